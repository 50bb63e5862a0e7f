import reactHooks from "eslint-plugin-react-hooks";
import tseslint from "typescript-eslint";

export default tseslint.config(
  { ignores: ["dist", "node_modules"] },
  ...tseslint.configs.strict,
  { files: ["src/**"], ...reactHooks.configs.flat["recommended-latest"] },
  {
    rules: {
      "@typescript-eslint/no-non-null-assertion": "off",
      "react-hooks/incompatible-library": "off", // about React's compiler, which is not used here
    },
  },
);
