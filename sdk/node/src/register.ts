/** register.ts: `node --import rival/register program.ts`: Node runs TypeScript programs as it loads workflow files. */
import { hook } from "./files/load.js";

hook();
