// A cause with everything in it.
import type { Cause } from "../../src/types/report";

export const cause: Cause = {
  id: "ini-pattern",
  culprit: "application",
  title: "The same file opened repeatedly",
  sentence: "10.0.0.7 opened settings.ini 3,000 times in 10.8 s.",
  cost: "10.0.0.7 lost 9.80 s of 11.1 s (88%).",
  subject: {
    client: "10.0.0.7",
    clients: 1,
    server: "10.0.0.1:445",
    users: ["LAB\\ann"],
    share: "home",
    path: "settings.ini",
  },
  lost_ns: { low: 8_700_000_000, best: 9_800_000_000, high: 9_900_000_000 },
  active_ns: 11_100_000_000,
  share: 0.8829,
  confidence: "high",
  evidence: [{ capture: 0, packet: 17, time_ns: 0 }],
  wireshark: 'ip.addr == 10.0.0.7 && smb2.filename == "settings.ini"',
  advice: "Have the application read the file once.",
  source: "A study",
  also: ["Bound by round trips"],
};
