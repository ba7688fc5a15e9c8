import { readFileSync } from "node:fs";
import Ajv2020 from "ajv/dist/2020";
import { describe, expect, it } from "vitest";
import { simulate } from "../documents/simulate";

const schema = (name: string) =>
  JSON.parse(readFileSync(new URL(`../../../schema/smbscope.${name}-1.schema.json`, import.meta.url), "utf8"));

describe("the documents of the tests", () => {
  it("are reports by the schema", () => {
    const validate = new Ajv2020({ allowUnionTypes: true, strictTuples: false }).compile(schema("report"));
    for (const document of [simulate(), simulate({ exchanges: 3, clients: 1, files: 1 })]) {
      validate(document);
      expect(validate.errors).toBeNull();
    }
  });
});
