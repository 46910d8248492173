"""Put a certificate revocation list into an organisation's MSP of a channel configuration."""

import argparse
import base64
import json
import sys
from pathlib import Path
from typing import Any


def main() -> None:
    """Read a decoded configuration block and print the configuration, changed or as it is."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--msp", required=True, help="MSP id of the organisation")
    parser.add_argument(
        "--crl", type=Path, help="PEM file of the list; without it the configuration stays as it is"
    )
    options = parser.parse_args()
    config = json.load(sys.stdin)["data"]["data"][0]["payload"]["data"]["config"]
    if options.crl:
        revoked = [base64.b64encode(options.crl.read_bytes()).decode()]
        for msp in msps(config, options.msp):
            msp["revocation_list"] = revoked
    json.dump(config, sys.stdout)


def msps(config: dict[str, Any], name: str) -> list[dict[str, Any]]:
    """Find the organisation among those of the application and of the orderers; Fabric wants both alike."""
    groups = [config["channel_group"]["groups"][group]["groups"] for group in ("Application", "Orderer")]
    found = [group[name]["values"]["MSP"]["value"]["config"] for group in groups if name in group]
    if not found:
        raise SystemExit(f"{name} is not in the channel")
    return found


if __name__ == "__main__":
    main()
