"""A trainer that trains nothing: registers with run-api, pulls batches, writes each as a line. A program to be killed.

python pulling_trainer.py URL FILE BATCH_SIZE
"""

import http.client
import json
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

_REGISTRATION = {
    "wandb_group": "test",
    "wandb_project": "test",
    "max_token_len": 4096,
    "checkpoint_dir": "",
    "save_checkpoint_interval": 0,
    "starting_step": 0,
    "num_steps": 1_000_000,
}


def ask(url: str, body: Any = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=30) as response:
        return json.load(response)


def main(url: str, path: str, batch_size: str) -> None:
    registered = False
    with Path(path).open("a") as file:
        file.write("\n")  # ends the line that a kill may have cut short
        while True:
            try:
                if not registered:
                    ask(f"{url}/register", {**_REGISTRATION, "batch_size": int(batch_size)})
                    registered = True
                answer = ask(f"{url}/batch")
            except (OSError, ValueError, http.client.HTTPException):
                registered = False
                time.sleep(0.2)
                continue
            registered = answer.get("status") != "error"
            if batch := answer.get("batch"):
                file.write(json.dumps(batch) + "\n")
                file.flush()
            else:
                time.sleep(0.1)


if __name__ == "__main__":
    main(*sys.argv[1:])
