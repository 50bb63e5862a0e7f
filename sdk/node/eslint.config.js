import tseslint from "typescript-eslint";

export default tseslint.config(
  { ignores: ["dist", "node_modules", "tests/fixtures"] },
  ...tseslint.configs.strict,
  {
    rules: {
      "@typescript-eslint/no-non-null-assertion": "off",
      // Results are JSON of any shape: the user says of which, or nobody does.
      "@typescript-eslint/no-explicit-any": "off",
      // `const { left, ...rest }` is how members are left out.
      "@typescript-eslint/no-unused-vars": ["error", { ignoreRestSiblings: true, argsIgnorePattern: "^_" }],
      // Overloads that infer differently are not one signature.
      "@typescript-eslint/unified-signatures": "off",
    },
  },
);
