#!/usr/bin/env python3
"""Runs impacket's SMB server on a free loopback port, for tests against a second implementation.

Reads the user's password from standard input, prints the port once it listens, and exits at the end of standard input.
It speaks SMB1 (NT LM 0.12) and SMB 2.0.2. The share is called SHARE.
"""

import argparse
import sys
import threading

from impacket.ntlm import compute_nthash
from impacket.smbserver import SimpleSMBServer


def main() -> None:
    """Serves a folder until standard input ends."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", help="the folder to share")
    parser.add_argument("user", help="the only user")
    parser.add_argument("--smb2", action="store_true", help="SMB 2.0.2 as well as SMB1")
    arguments = parser.parse_args()
    password = sys.stdin.readline().rstrip("\n")

    server = SimpleSMBServer(listenAddress="127.0.0.1", listenPort=0)
    server.addShare("SHARE", arguments.folder)
    server.addCredential(arguments.user, 0, "", compute_nthash(password).hex())
    server.setSMB2Support(arguments.smb2)
    server.setKerberosSupport(False)
    threading.Thread(target=server.start, daemon=True).start()
    print(server.getServer().server_address[1], flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
