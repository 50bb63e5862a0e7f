import { expect, expectAccessible, refused, test } from "./fixture";

test.describe("launching by the form", () => {
  test.use({ expected: refused(422) });

  test("what the server refuses is said at the fields, and a good input starts a run", async ({ page }) => {
    await page.goto("/");
    await page.getByRole("navigation").getByRole("link", { name: "Workflows" }).click();
    await expect(page).toHaveURL(/\/workflows$/);
    await page.getByRole("link", { name: "greet", exact: true }).click();
    await expect(page.getByRole("heading", { level: 1 })).toHaveText("greet");

    await page.getByLabel(/^name/).fill("A");
    await page.getByRole("button", { name: "Launch" }).click();
    await expect(page.getByRole("alert").filter({ hasText: "refuses this input" })).toContainText("2 reasons");
    const name = page.locator(".form-field", { has: page.getByLabel(/^name/) }).last();
    await expect(name).toContainText("at least 2");
    const age = page.locator(".form-field", { has: page.getByLabel(/^age/) }).last();
    await expect(age).toContainText("is required");

    await page.getByLabel(/^name/).fill("Ada");
    await page.getByLabel(/^age/).fill("36");
    await page.getByRole("button", { name: "Add to people" }).click();
    await page.getByLabel(/^age/).nth(1).fill("41");
    await page.getByLabel("tone").selectOption("formal");
    await page.getByRole("checkbox", { name: "loud" }).check();
    await page.getByRole("button", { name: "Launch" }).click();

    await expect(page).toHaveURL(/\/runs\/[^/]+$/);
    await expect(page.locator(".run-facts")).toContainText("completed");
    await page.getByRole("link", { name: "Input & output" }).click();
    await expect(page.getByRole("group", { name: "the input" })).toContainText('"tone": "formal"');
    await expect(page.getByRole("group", { name: "the result of hello" })).toContainText("hello Ada");
  });

  test("a bad run id is told apart from a bad input", async ({ page }) => {
    await page.goto("/workflows/release");
    await page.getByText("Choose the run's id").click();
    await page.getByLabel("Run id").fill("one two");
    await page.getByLabel("Run id").evaluate((input: HTMLInputElement) => (input.form!.noValidate = true));
    await page.getByRole("button", { name: "Launch" }).click();
    await expect(page.getByRole("alert").first()).toContainText("runId");
  });
});

test("the JSON field and the form hold the same input", async ({ page }) => {
  await page.goto("/workflows/greet");
  await page.getByLabel(/^name/).fill("Ada");
  await page.getByRole("button", { name: "JSON" }).click();
  const json = page.getByLabel("Input, as JSON");
  await expect(json).toHaveValue(/"name": "Ada"/);
  await json.fill('{ "name": "Bob", "people": [{ "age": 7 }] }');
  await page.getByRole("button", { name: "Form" }).click();
  await expect(page.getByLabel(/^name/)).toHaveValue("Bob");
  await expect(page.getByLabel(/^age/)).toHaveValue("7");
});

test("a workflow without a schema takes any JSON, and says when it is none", async ({ page }) => {
  await page.goto("/workflows/any.json");
  await page.getByLabel("Input, as JSON").fill("{ oops");
  await page.getByRole("button", { name: "Launch" }).click();
  await expect(page.getByText(/This is not JSON/)).toBeVisible();
  await page.getByLabel("Input, as JSON").fill('{ "x": [1, 2] }');
  await page.getByRole("button", { name: "Launch" }).click();
  await expect(page.locator(".run-facts")).toContainText("completed");
});

test.describe("a form for every schema", () => {
  test.use({ expected: refused(422) });

  test("alternatives, recursion, free keys and values of any type", async ({ page }) => {
    await page.goto("/workflows/shapes");
    await page.getByLabel("label").first().fill("oak");
    await page.getByRole("button", { name: "Add to twigs" }).click();
    await page.getByLabel("label").nth(1).fill("twig");
    await page.getByRole("combobox").filter({ hasText: "In cash" }).selectOption("In cash");
    await page.getByLabel(/^cash/).fill("-1");
    await page.getByRole("checkbox", { name: "green" }).check();
    const anything = page.getByLabel("anything");
    await anything.fill('{ "of": [1');
    await page.getByRole("button", { name: "Launch" }).click();
    await expect(anything).toBeFocused();
    await expect(page.getByRole("alert").filter({ hasText: "This is not JSON" })).toBeVisible();
    await anything.fill('{ "of": [1, null, "any kind"] }');
    await page.getByRole("button", { name: "Launch" }).click();
    await expect(page.getByRole("alert").filter({ hasText: "refuses this input" })).toBeVisible();
    await page.getByLabel(/^cash/).fill("12");
    await page.getByRole("button", { name: "Launch" }).click();
    await expect(page.locator(".run-facts")).toContainText("completed");
    await page.getByRole("link", { name: "Input & output" }).click();
    const input = page.getByRole("group", { name: "the input" });
    for (const part of ['"label": "oak"', '"label": "twig"', '"cash": 12', '"green"', '"level": 3', '"any kind"'])
      await expect(input).toContainText(part);
  });
});

test.describe("an input of one value", () => {
  test.use({ expected: refused(422) });

  test("has a name, and says once what is wrong with it", async ({ page }) => {
    await page.goto("/workflows/word");
    const input = page.getByLabel(/^Input/);
    await expect(input).toBeEditable();
    await expectAccessible(page);
    await page.getByRole("button", { name: "Launch" }).click();
    await expect(page.getByRole("alert").filter({ hasText: "refuses this input" })).toBeVisible();
    await expect(page.getByText(/at least 2/)).toHaveCount(1);
    await expect(page.locator(".form-field")).toContainText("at least 2");
    await input.fill("oak");
    await page.getByRole("button", { name: "Launch" }).click();
    await expect(page.locator(".run-facts")).toContainText("completed");
    await page.getByRole("link", { name: "Input & output" }).click();
    await expect(page.getByRole("group", { name: "the input" })).toContainText('"oak"');
  });

  test("may be a list", async ({ page }) => {
    await page.goto("/workflows/words");
    await page.getByRole("button", { name: "Add to Input" }).click();
    await page.getByLabel("Input-1").fill("oak");
    await page.getByRole("button", { name: "Launch" }).click();
    await expect(page.locator(".run-facts")).toContainText("completed");
    await page.getByRole("link", { name: "Input & output" }).click();
    await expect(page.getByRole("group", { name: "the input" })).toContainText('"oak"');
  });
});

test("values of different types that look the same can be told apart", async ({ page }) => {
  await page.goto("/workflows/mixed");
  await expect(page.getByLabel("which").getByRole("option")).toHaveText(["", "1", '"1"', "one"]);
  await page.getByLabel("which").selectOption('"1"');
  await page.getByLabel("open").fill("[true]");
  await page.getByRole("button", { name: "Launch" }).click();
  await page.getByRole("link", { name: "Input & output" }).click();
  await expect(page.getByRole("group", { name: "the input" })).toContainText('"which": "1"');
});

test("a run is launched again with its input, to be changed", async ({ page, api }) => {
  const id = await api.launch("greet", { name: "Ada", people: [{ age: 36 }] });
  await page.goto(`/runs/${id}`);
  await page.getByRole("link", { name: "Run again" }).click();
  await expect(page.getByLabel(/^name/)).toHaveValue("Ada");
  await page.getByLabel(/^name/).fill("Grace");
  await page.getByRole("button", { name: "Launch" }).click();
  await expect(page).toHaveURL(/\/runs\/[^/]+$/);
  expect(page.url()).not.toContain(id);
});

test("the plan of a workflow is shown before it runs", async ({ page }) => {
  await page.goto("/workflows/release/plan");
  for (const alias of ["notes", "answer", "decide", "ship", "hold"])
    await expect(page.getByText(alias, { exact: true }).first()).toBeVisible();
});

test("a form is sent by Enter, one of JSON by Ctrl and Enter", async ({ page, api }) => {
  await page.goto("/workflows/release");
  await page.getByLabel("version").fill("3.0");
  await page.keyboard.press("Enter");
  await expect(page).toHaveURL(/\/runs\/[^/]+$/);
  await page.goto("/workflows/any.json");
  await page.getByLabel("Input, as JSON").fill("[1,\n2]");
  await page.keyboard.press("Control+Enter");
  await expect(page).toHaveURL(/\/runs\/[^/]+$/);
  const id = new URL(page.url()).pathname.split("/")[2]!;
  expect(((await api.get(`/runs/${id}`)) as { input: unknown }).input).toEqual([1, 2]);
});

test("a draft is kept until it is launched, or dropped", async ({ page }) => {
  await page.goto("/workflows/release");
  await expect(page.getByLabel("version")).toHaveValue("1.0");
  await page.getByRole("link", { name: "Plan", exact: true }).click();
  await page.getByRole("link", { name: "Launch", exact: true }).click();
  await expect(page.getByText("As you left it")).toHaveCount(0); // nothing was typed
  await page.getByLabel("version").fill("7.7");
  await page.getByRole("navigation", { name: "Main" }).getByRole("link", { name: "Runs" }).click();
  await expect(page.getByRole("heading", { name: "Runs" })).toBeVisible();
  await page.goBack();
  await expect(page.getByLabel("version")).toHaveValue("7.7");
  await page.reload();
  await expect(page.getByLabel("version")).toHaveValue("7.7");
  await page.getByRole("button", { name: "Start afresh" }).click();
  await expect(page.getByLabel("version")).toHaveValue("1.0");
  await page.getByLabel("version").fill("8.8");
  await page.getByRole("button", { name: "Launch" }).click();
  await expect(page).toHaveURL(/\/runs\/[^/]+$/);
  await page.goto("/workflows/release");
  await expect(page.getByLabel("version")).toHaveValue("1.0");
});

test("what it will do stands beside the form", async ({ page }) => {
  await page.goto("/workflows/release");
  const plan = page.getByRole("region", { name: "What it will do" });
  await expect(plan).toContainText("notes");
  const form = await page.getByRole("form", { name: "Launch release" }).boundingBox();
  const box = await plan.boundingBox();
  expect(box!.x).toBeGreaterThan(form!.x + form!.width - 1);
  expect(Math.abs(box!.y - form!.y)).toBeLessThan(2);
});

test("the definition is shown as its author wrote it", async ({ page }) => {
  await page.goto("/workflows/release/definition");
  await expect(page.locator(".workflow-source")).toContainText("- answer: { signal: approval, description:");
});
