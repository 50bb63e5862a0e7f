import type { Page } from "@playwright/test";
import { expect, test, type Api } from "./fixture";

/* Numbers keep their digits, on the way in, in the page, and on the way out. */
const LONG = "12345678901234567890123";

async function launched(page: Page): Promise<string> {
  await page.getByRole("button", { name: "Launch" }).click();
  await expect(page).toHaveURL(/\/runs\/[^/]+$/);
  return new URL(page.url()).pathname.split("/")[2]!;
}

async function inputOf(api: Api, id: string): Promise<string> {
  const text = await api.text(`/runs/${id}?results=0`);
  return /"input":(\{.*?\}),"/s.exec(text)?.[1]?.replace(/\s/g, "") ?? text;
}

test("JSON is sent as it is typed, shown as it is, and sent again", async ({ page, api }) => {
  await page.goto("/workflows/any.json");
  await page.getByLabel("Input, as JSON").fill(`{"n":${LONG},"far":1e400,"price":1.10}`);
  const id = await launched(page);
  expect(await inputOf(api, id)).toBe(`{"n":${LONG},"far":1e400,"price":1.10}`);

  await page.getByRole("link", { name: "Input & output" }).click();
  const input = page.getByRole("group", { name: "the input" });
  for (const line of [`"n": ${LONG}`, '"far": 1e400', '"price": 1.10']) await expect(input).toContainText(line);

  await page.getByRole("link", { name: "Run again" }).click();
  await expect(page.getByLabel("Input, as JSON")).toHaveValue(
    new RegExp(`"n": ${LONG},\\s+"far": 1e400,\\s+"price": 1.10`),
  );
  const again = await launched(page);
  expect(again).not.toBe(id);
  expect(await inputOf(api, again)).toBe(`{"n":${LONG},"far":1e400,"price":1.10}`);
});

test("a form keeps the digits of a default, of what is typed and of what is chosen", async ({ page, api }) => {
  await page.goto("/workflows/exact");
  await expect(page.getByLabel("count")).toHaveValue("12345678901234567890");
  await page.getByLabel("price").pressSequentially("1.10");
  await expect(page.getByLabel("price")).toHaveValue("1.10");
  await page.getByLabel("size").selectOption("12345678901234567890");
  await page.getByLabel("any").fill(`[${LONG}, 1e400]`);
  const id = await launched(page);
  const input = `{"count":12345678901234567890,"price":1.10,"size":12345678901234567890,"any":[${LONG},1e400]}`;
  expect(JSON.parse(quoted(await inputOf(api, id)))).toEqual(JSON.parse(quoted(input)));

  await page.getByRole("button", { name: "Signal…" }).click();
  await page.getByLabel("Name").fill("go");
  await page.getByLabel("Content, as JSON").fill(LONG);
  await page.getByRole("button", { name: "Send" }).click();
  await page.getByRole("link", { name: "Input & output" }).click();
  await expect(page.getByRole("group", { name: "the result of wait" })).toContainText(LONG);
  await expect(page.getByRole("group", { name: "the result of echo" })).toContainText('"price": 1.10');

  await page.getByRole("link", { name: "Run again" }).click();
  await expect(page.getByLabel("count")).toHaveValue("12345678901234567890");
  await expect(page.getByLabel("price")).toHaveValue("1.10");
  await expect(page.getByLabel("any")).toHaveValue(new RegExp(LONG));
  await page.getByLabel("count").fill("0.1e1");
  await page.getByRole("button", { name: "JSON" }).click();
  await expect(page.getByLabel("Input, as JSON")).toHaveValue(/"count": 0.1e1,\s+"price": 1.10/);
  await page.getByRole("button", { name: "Form" }).click();
  await expect(page.getByLabel("count")).toHaveValue("0.1e1");
});

/** With every number as a string, so that they can be compared by their digits. */
const quoted = (json: string) => json.replace(/(?<=[[:,]\s*)-?\d[\d.eE+-]*/g, '"$&"');
