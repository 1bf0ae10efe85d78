"""A publisher in Python of an ordered stream that any number of publishers, in any language, share.

    python -m pip install -r requirements.txt
    npm start                      # in another terminal; prints the two variables to set
    python publish_in_order.py TOPIC KEY TEXT [TEXT …]

Takes one number for each text in one Firestore transaction and publishes after its commit. The protocol is that of
docs/wire-contract.md; nothing of the library is needed. A process that dies between the commit and the publish leaves
a gap, where consumers wait visibly: write the message itself in a transaction of your own (an outbox) if it must not.
"""

import base64
import hashlib
import os
import sys
import time
import uuid

from google.api_core import exceptions
from google.cloud import firestore, pubsub_v1

COLLECTION = "pubsub-guarantees-counters"
LARGEST = 2**53 - 1
# Firestore repeats a transaction by itself; after that many others were in the way each time, and nothing was taken.
ATTEMPTS = 10


def counter_name(key: str) -> str:
    """SHA-256 of the key, preceded by its length in bytes and a colon, in URL-safe base64 without padding."""
    data = key.encode("utf-8")
    if not 1 <= len(data) <= 1024:
        raise ValueError(f"the sequenceKey has {len(data)} bytes; accepted: 1 to 1024")
    digest = hashlib.sha256(b"%d:%b" % (len(data), data)).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode("ascii")


def take_numbers(database: firestore.Client, key: str, count: int) -> tuple[int, str]:
    """The first of `count` numbers that follow each other, and the epoch of their counter. Returns after the commit."""
    document = database.collection(COLLECTION).document(counter_name(key))
    fresh_epoch = str(uuid.uuid4())

    @firestore.transactional
    def take(transaction: firestore.Transaction) -> tuple[int, str]:
        snapshot = document.get(transaction=transaction)
        if not snapshot.exists:
            transaction.create(document, {"v": 1, "epoch": fresh_epoch, "next": count + 1})
            return 1, fresh_epoch
        first, epoch = snapshot.get("next"), snapshot.get("epoch")
        if snapshot.get("v") != 1 or not isinstance(first, int) or not isinstance(epoch, str):
            raise ValueError(f"{document.path} is no counter of this format")
        if first + count - 1 > LARGEST:
            raise OverflowError(f"{document.path} has no numbers left")
        # Only `next`: the other fields belong to the program that wrote them.
        transaction.update(document, {"next": first + count})
        return first, epoch

    return take(database.transaction(max_attempts=ATTEMPTS))


def publish(publisher: pubsub_v1.PublisherClient, topic: str, data: bytes, attributes: dict[str, str]) -> str:
    """Tries again with the same number until the service has it: another number would leave a gap."""
    for attempt in range(10):
        try:
            return publisher.publish(topic, data, **attributes).result(timeout=30)
        except (exceptions.RetryError, exceptions.ServiceUnavailable, exceptions.DeadlineExceeded, TimeoutError):
            time.sleep(min(2**attempt * 0.1, 5))
    raise RuntimeError(f"number {attributes['sequence']} could not be published: it is a gap until a publisher publishes it")


def main(topic: str, key: str, texts: list[str]) -> None:
    project = os.environ.get("GOOGLE_CLOUD_PROJECT", "demo-project")
    database = firestore.Client(project=project)
    publisher = pubsub_v1.PublisherClient()
    first, epoch = take_numbers(database, key, len(texts))
    for index, text in enumerate(texts):
        number = first + index
        attributes = {
            "sequence": str(number),
            "sequenceKey": key,
            "sequenceEpoch": epoch,
            # The same in every attempt, so that a repeat is recognised behind `once`.
            "dedupId": f"{epoch}/{number}",
        }
        publish(publisher, publisher.topic_path(project, topic), text.encode("utf-8"), attributes)
        print(f"published {number}: {text}", flush=True)


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit("usage: publish_in_order.py TOPIC KEY TEXT [TEXT …]")
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
