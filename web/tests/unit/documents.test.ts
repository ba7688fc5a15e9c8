import { readFileSync } from "node:fs";
import Ajv2020 from "ajv/dist/2020";
import { describe, expect, it } from "vitest";
import { cause } from "../documents/cause";
import { comparedRamps, comparison } from "../documents/comparison";
import { launch } from "../documents/launch";
import { predictedUsers, prediction } from "../documents/prediction";
import { ramp } from "../documents/ramp";
import { sides } from "../documents/sides";
import { simulate } from "../documents/simulate";
import { study } from "../documents/study";

const schema = (name: string) =>
  JSON.parse(readFileSync(new URL(`../../../schema/smbscope.${name}-1.schema.json`, import.meta.url), "utf8"));

describe("the documents of the tests", () => {
  it("are reports by the schema", () => {
    const validate = new Ajv2020({ strict: false }).compile(schema("report"));
    const some = simulate({ exchanges: 3, clients: 1, files: 1 });
    const caused = { ...some, answer: { ...some.answer, causes: [cause], notes: [cause] } };
    const sided = { ...some, sides: sides(["client", "firewall", "server"]) };
    for (const document of [simulate(), some, caused, sided]) {
      validate(document);
      expect(validate.errors).toBeNull();
    }
  });

  it("are ramps by the schema", () => {
    const validate = new Ajv2020({ strict: false }).compile(schema("bench"));
    for (const document of [ramp(), ramp([5]), ramp([]), launch()]) {
      validate(document);
      expect(validate.errors).toBeNull();
    }
  });

  it("are studies by the schema", () => {
    const validate = new Ajv2020({ strict: false }).compile(schema("study"));
    for (const document of [study(), study([1, 8, 32], 3), { ...study(), runs: [], results: [], server: [] }]) {
      validate(document);
      expect(validate.errors).toBeNull();
    }
  });

  it("are predictions by the schema", () => {
    const validate = new Ajv2020({ strict: false }).compile(schema("prediction"));
    for (const document of [prediction(), predictedUsers()]) {
      validate(document);
      expect(validate.errors).toBeNull();
    }
  });

  it("are comparisons by the schema", () => {
    const validate = new Ajv2020({ strict: false }).compile(schema("compare"));
    for (const document of [comparison(), comparedRamps()]) {
      validate(document);
      expect(validate.errors).toBeNull();
    }
  });
});
