export function typesOf(openapi: unknown): Promise<string>;
