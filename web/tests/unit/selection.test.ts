// Selections: their addresses, the causes that concern them, and the commands that report on them.
import { describe, expect, it } from "vitest";
import { clientSelection, fileSelection, parsed, shareSelection } from "../../src/lib/selection";
import { concerns } from "../../src/report/causes";
import { commandOf } from "../../src/report/selected";
import type { CaptureInfo } from "../../src/types/report";
import { cause } from "../documents/cause";

describe("an address", () => {
  it("names a client, a share or a file, after a section or alone", () => {
    expect(parsed("#client=10.0.0.5")).toEqual({ section: null, selection: clientSelection("10.0.0.5") });
    expect(parsed("#slowest&share=a%26b%3D1")).toEqual({ section: "slowest", selection: shareSelection("a&b=1") });
    expect(parsed("#file=x%5Cy.doc&share=home").selection).toEqual(fileSelection("x\\y.doc", "home"));
    expect(parsed("#file=x.doc").selection).toEqual(fileSelection("x.doc", null));
  });

  it("of a section or of nothing known selects nothing", () => {
    expect(parsed("#quality")).toEqual({ section: "quality", selection: null });
    for (const fragment of ["", "#", "#server=10.0.0.1", "#client="]) expect(parsed(fragment).selection).toBe(null);
    expect(parsed("#client=%E0%A4%A").selection).toEqual(clientSelection("%E0%A4%A"));
  });
});

describe("a cause", () => {
  const { subject } = cause;

  it("concerns its client, share and file", () => {
    expect(concerns(subject, clientSelection("10.0.0.7"))).toBe(true);
    expect(concerns(subject, clientSelection("10.0.0.8"))).toBe(false);
    expect(concerns(subject, shareSelection("data"))).toBe(false);
    expect(concerns(subject, fileSelection("settings.ini", "home"))).toBe(true);
    expect(concerns(subject, fileSelection("settings.ini", "data"))).toBe(false);
    expect(concerns(subject, fileSelection("other.ini", "home"))).toBe(false);
  });

  it("concerns files below its directory, and anything that it does not name", () => {
    expect(concerns({ ...subject, path: "app" }, fileSelection("app\\settings.ini", "home"))).toBe(true);
    expect(concerns({ ...subject, path: "app" }, fileSelection("apple.ini", "home"))).toBe(false);
    expect(concerns({ ...subject, path: null }, fileSelection("other.ini", "home"))).toBe(true);
    expect(concerns({ ...subject, clients: 3 }, clientSelection("10.0.0.8"))).toBe(true);
  });
});

describe("the command for a selection", () => {
  const captures = [{ name: "a b.pcap" } as CaptureInfo];

  it("quotes values for the filter and words for the shell", () => {
    expect(commandOf({ captures, filter: null }, fileSelection("it's\\(1).doc", "home"))).toBe(
      `smbscope analyze --filter 'share == home and path == "it'\\''s\\(1).doc"' -o selected.html 'a b.pcap'`,
    );
  });

  it("is missing for a name that does more in a terminal than it shows", () => {
    for (const name of ["a\nb", "a\u202eb", "\u001b]0;x"]) {
      expect(commandOf({ captures, filter: null }, shareSelection(name))).toBe(null);
    }
    const hostile = [{ name: "a\nb.pcap" } as CaptureInfo];
    expect(commandOf({ captures: hostile, filter: null }, shareSelection("x"))).toMatch(/ FILE$/);
  });

  it("keeps the filter of the page, and names no capture that a shell cannot", () => {
    expect(commandOf({ captures: [{ name: "-" } as CaptureInfo], filter: "error" }, clientSelection("fd00::5"))).toBe(
      "smbscope analyze --filter '(error) and client == fd00::5' -o selected.html FILE",
    );
  });
});
