// Tests are TypeScript, loaded as workflow files are.
import "../dist/register.js";
