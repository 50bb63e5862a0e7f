// lint.mjs FILE: what Redocly's linter, with its recommended rules, has to say about an OpenAPI document.
import { createConfig, lintFromString } from "@redocly/openapi-core";
import { readFileSync } from "node:fs";

const config = await createConfig({ extends: ["recommended"] });
const problems = await lintFromString({ source: readFileSync(process.argv[2], "utf8"), config });
for (const p of problems)
  console.log(`${p.severity}: ${p.ruleId}: ${p.message} at ${p.location[0]?.pointer ?? ""}`);
process.exit(problems.length > 0 ? 1 : 0);
