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
        msp(config, options.msp)["revocation_list"] = [base64.b64encode(options.crl.read_bytes()).decode()]
    json.dump(config, sys.stdout)


def msp(config: dict[str, Any], name: str) -> dict[str, Any]:
    """Find the organisation among those of the application and of the orderers."""
    for group in ("Application", "Orderer"):
        organisations = config["channel_group"]["groups"][group]["groups"]
        if name in organisations:
            found: dict[str, Any] = organisations[name]["values"]["MSP"]["value"]["config"]
            return found
    raise SystemExit(f"{name} is not in the channel")


if __name__ == "__main__":
    main()
