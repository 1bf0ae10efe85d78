"""A participant of a saga in Python, by the table of docs/sagas.md: nothing of the library, nothing but the standard library.

    npm start                      # in another terminal; prints the variables to set
    LOCAL_STACK_CONTROL=… python3 couriers.py

It keeps its rides and its step records in SQLite. A step's writes, its record and its reply are one commit, so a crash
leaves all of them or nothing; a reply that was committed and not published is published when the process starts again.
Pub/Sub is called over REST: here that of the local stack, elsewhere https://pubsub.googleapis.com with a token.
"""

import base64
import hashlib
import json
import os
import sqlite3
import sys
import time
import urllib.request

PROJECT = os.environ.get("GOOGLE_CLOUD_PROJECT", "demo-project")
BASE = os.environ["LOCAL_STACK_CONTROL"] + "/v1/"
SUBSCRIPTION = f"projects/{PROJECT}/subscriptions/food-couriers-sub"
# Answers go to topics on this list alone: a command may name any.
REPLY_TO = [f"projects/{PROJECT}/topics/saga"]

TABLES = """
CREATE TABLE IF NOT EXISTS rides (id TEXT PRIMARY KEY, courier TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS steps (saga TEXT, instance TEXT, step TEXT, state TEXT NOT NULL, reply TEXT NOT NULL,
  code TEXT NOT NULL, PRIMARY KEY (saga, instance, step));
CREATE TABLE IF NOT EXISTS replies (id INTEGER PRIMARY KEY, topic TEXT NOT NULL, message TEXT NOT NULL);
"""


def find(database: sqlite3.Connection, body: dict) -> tuple[str, str, str]:
    """The step `courier`: its outcome, its reply as JSON, and with a refusal its code."""
    if body["to"] == "far side":
        return "refused", "", "NO_COURIER"
    courier = "Guido"
    database.execute("INSERT INTO rides VALUES (?, ?)", (body["order"], courier))
    print(f"found {courier} for {body['order']}", flush=True)
    return "done", json.dumps({"courier": courier}), ""


def release(database: sqlite3.Connection, body: dict) -> tuple[str, str, str]:
    """The compensation of `courier`."""
    database.execute("DELETE FROM rides WHERE id = ?", (body["order"],))
    print(f"released the courier of {body['order']}", flush=True)
    return "undone", "", ""


STEPS = {"courier": (find, release)}


def answer(database: sqlite3.Connection, message: dict) -> tuple[str, str, str]:
    """What the table says, by the record of (saga, instance, step)."""
    attributes = message["attributes"]
    key = (attributes["saga"], attributes["sagaId"], attributes["sagaStep"])
    action, kind = attributes["sagaAction"], attributes["sagaKind"]
    do, undo = STEPS[attributes["sagaStep"]]
    body = json.loads(base64.b64decode(message.get("data", "")) or b"null")
    found = database.execute(
        "SELECT state, reply, code FROM steps WHERE saga = ? AND instance = ? AND step = ?", key
    ).fetchone()
    state, reply, code = found or (None, "", "")

    def record(new_state: str, said: tuple[str, str, str]) -> tuple[str, str, str]:
        database.execute("INSERT OR REPLACE INTO steps VALUES (?, ?, ?, ?, ?, ?)", (*key, new_state, *said[1:]))
        return said

    if action == "do":
        if state is None:
            said = do(database, body)
            # What must succeed in the end is asked again: its refusal is said, and not remembered.
            return said if said[0] == "refused" and kind == "retriable" else record(said[0], said)
        return (state, reply, code) if state in ("done", "refused") else ("cancelled", "", "")
    if action == "undo":
        if state == "done" or (state is None and kind == "begun"):
            said = undo(database, body)
            return record("undone", said) if said[0] == "undone" else said
        if state is None and attributes.get("sagaKnown") == "true":
            return "missing", "", ""
        return record("cancelled", ("undone", "", "")) if state in (None, "refused") else ("undone", "", "")
    if action == "withdraw":
        if state == "done":
            return "done", reply, ""
        return record("cancelled", ("withdrawn", "", "")) if state is None else ("withdrawn", "", "")
    raise ValueError(f"sagaAction is {action!r}")


def handle(database: sqlite3.Connection, message: dict) -> None:
    """Writes, record and reply in one commit."""
    attributes = message["attributes"]
    topic = attributes["replyTo"]
    if topic not in REPLY_TO:
        raise PermissionError(f"replyTo is {topic!r}; accepted: {REPLY_TO}")
    with database:
        database.execute("BEGIN IMMEDIATE")
        outcome, reply, code = answer(database, message)
        about = [attributes[name] for name in ("saga", "sagaId", "sagaStep", "sagaAction", "sagaAttempt")]
        # Another answer to the same attempt is another message; the same answer again is a duplicate.
        name = hashlib.sha256(json.dumps([*about, outcome, code]).encode()).hexdigest()
        said = {
            **{name: attributes[name] for name in ("saga", "sagaId", "sagaStep", "sagaAction", "sagaAttempt")},
            "sagaOutcome": outcome,
            **({"sagaCode": code} if code else {}),
            "dedupId": name,
            "correlationId": attributes["correlationId"],
            "causationId": attributes["dedupId"],
        }
        data = base64.b64encode(reply.encode()).decode()
        text = json.dumps({"data": data, "attributes": said})
        database.execute("INSERT INTO replies (topic, message) VALUES (?, ?)", (topic, text))


def call(path: str, body: dict) -> dict:
    request = urllib.request.Request(BASE + path, json.dumps(body).encode(), {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as response:
        return json.load(response)


def publish_replies(database: sqlite3.Connection) -> None:
    """Those of an earlier process too. One that is published and not yet deleted is published again: a duplicate."""
    for number, topic, message in database.execute("SELECT id, topic, message FROM replies ORDER BY id").fetchall():
        call(f"{topic}:publish", {"messages": [json.loads(message)]})
        database.execute("DELETE FROM replies WHERE id = ?", (number,))


def main() -> None:
    database = sqlite3.connect(os.environ.get("COURIERS_DB", ":memory:"), isolation_level=None)
    database.executescript(TABLES)
    print("ready", flush=True)
    parent = os.getppid()
    # Without the program that has started it, it ends.
    while os.getppid() == parent:
        publish_replies(database)
        pulled = call(f"{SUBSCRIPTION}:pull", {"maxMessages": 10}).get("receivedMessages", [])
        for received in pulled:
            try:
                handle(database, received["message"])
            except (KeyError, PermissionError, ValueError) as error:
                # No command of ours. Elsewhere it goes to a dead-letter topic.
                print(f"dropped: {error!r}", file=sys.stderr, flush=True)
        publish_replies(database)
        if not pulled:
            time.sleep(0.2)
        else:
            call(f"{SUBSCRIPTION}:acknowledge", {"ackIds": [one["ackId"] for one in pulled]})


if __name__ == "__main__":
    main()
