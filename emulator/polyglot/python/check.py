"""Google's Python clients against the local stack: prints one line for each thing that holds, ends with 1 at the first that does not.

The stack's addresses come from PUBSUB_EMULATOR_HOST, FIRESTORE_EMULATOR_HOST and CLOUD_TASKS_EMULATOR_HOST, that of
its control API from LOCAL_STACK_CONTROL.
"""

import concurrent.futures
import datetime
import http.server
import os
import queue
import threading

import grpc
from google.api_core import exceptions
from google.cloud import firestore, pubsub_v1, tasks_v2
from google.cloud.firestore_v1.base_query import FieldFilter
from google.cloud.tasks_v2.services.cloud_tasks.transports import CloudTasksGrpcTransport
from google.protobuf import duration_pb2, timestamp_pb2

from moves import moves

PROJECT = "polyglot-python"
LIMIT_SECONDS = 20


def holds(what: str, condition: bool, seen: object = "") -> None:
    if not condition:
        raise AssertionError(f"{what}: {seen}")
    print(f"ok python: {what}", flush=True)


def refused(what: str, error: type[Exception], act) -> None:
    try:
        act()
    except error:
        holds(what, True)
        return
    raise AssertionError(f"{what}: it was accepted")


def received(subscriber, path: str, count: int, on_message=None) -> list:
    """Streams until `count` messages were acknowledged."""
    got: queue.Queue = queue.Queue()

    def callback(message) -> None:
        if on_message is not None and on_message(message) is False:
            message.nack()
            return
        message.ack()
        got.put(message)

    stream = subscriber.subscribe(path, callback)
    try:
        return [got.get(timeout=LIMIT_SECONDS) for _ in range(count)]
    finally:
        stream.cancel()
        stream.result(timeout=LIMIT_SECONDS)


def pubsub() -> None:
    publisher = pubsub_v1.PublisherClient(
        publisher_options=pubsub_v1.types.PublisherOptions(enable_message_ordering=True)
    )
    subscriber = pubsub_v1.SubscriberClient()
    topic = publisher.topic_path(PROJECT, "events")

    def subscription(name: str, **options) -> str:
        path = subscriber.subscription_path(PROJECT, name)
        subscriber.create_subscription(request={"name": path, "topic": topic, **options})
        return path

    publisher.create_topic(name=topic)
    refused("a topic is created once", exceptions.AlreadyExists, lambda: publisher.create_topic(name=topic))
    plain = subscription("plain", ack_deadline_seconds=10)
    ordered = subscription("ordered", enable_message_ordering=True)
    filtered = subscription("filtered", filter='attributes.kind = "even"')
    once = subscription("exactly-once", enable_exactly_once_delivery=True)

    sent = [
        publisher.publish(topic, b"%d" % n, ordering_key=f"key-{n % 3}", kind="odd" if n % 2 else "even")
        for n in range(300)
    ]
    ids = {each.result(timeout=LIMIT_SECONDS) for each in sent}
    holds("300 messages have 300 IDs", len(ids) == 300, len(ids))

    first_time = set()

    def once_nacked(message) -> bool:
        if int(message.data) % 50 or message.message_id in first_time:
            return True
        first_time.add(message.message_id)
        return False

    arrived = received(subscriber, plain, 300, once_nacked)
    holds("each message arrives, those that were nacked once too", {m.message_id for m in arrived} == ids)
    keyed: dict[str, list[int]] = {}
    for message in received(subscriber, ordered, 300):
        keyed.setdefault(message.ordering_key, []).append(int(message.data))
    holds("each ordering key is in order", all(each == sorted(each) for each in keyed.values()), keyed)
    even = received(subscriber, filtered, 150)
    holds("a filter lets only its own through", all(m.attributes["kind"] == "even" for m in even))

    results: queue.Queue = queue.Queue()
    stream = subscriber.subscribe(once, lambda message: results.put(message.ack_with_response()))
    for _ in range(300):
        results.get(timeout=LIMIT_SECONDS).result(timeout=LIMIT_SECONDS)
    stream.cancel()
    stream.result(timeout=LIMIT_SECONDS)
    holds("exactly-once acknowledgements are confirmed", True)
    refused(
        "the reserved prefix goog is refused",
        exceptions.InvalidArgument,
        lambda: publisher.publish(topic, b"x", googclient="x").result(timeout=LIMIT_SECONDS),
    )


def documents() -> None:
    db = firestore.Client(project=PROJECT)
    counter = db.document("counters/one")
    counter.create({"value": 0})
    refused("a document is created once", exceptions.AlreadyExists, lambda: counter.create({"value": 0}))

    def add() -> None:
        # One for each call: what the decorator makes remembers the transaction that it tries again, for all threads.
        @firestore.transactional
        def increment(transaction) -> None:
            value = counter.get(transaction=transaction).get("value")
            transaction.update(counter, {"value": value + 1})

        increment(db.transaction(max_attempts=20))

    with concurrent.futures.ThreadPoolExecutor(5) as pool:
        for done in [pool.submit(add) for _ in range(50)]:
            done.result(timeout=60)
    holds("50 concurrent increments make 50", counter.get().get("value") == 50, counter.get().to_dict())

    seen = threading.Event()
    watch = db.collection("people").on_snapshot(lambda docs, _changes, _time: len(docs) == 20 and seen.set())
    batch = db.batch()
    for n in range(20):
        batch.set(db.document(f"people/{n:02}"), {"age": n, "tags": ["a", "b"][: n % 3], "at": firestore.SERVER_TIMESTAMP})
    batch.commit()
    holds("a listener sees a batch", seen.wait(LIMIT_SECONDS))
    watch.unsubscribe()
    adults = db.collection("people").where(filter=FieldFilter("age", ">=", 18)).order_by("age").stream()
    holds("a query filters and orders", [each.get("age") for each in adults] == [18, 19])
    tagged = db.collection("people").where(filter=FieldFilter("tags", "array_contains", "b")).count().get()
    holds("an aggregation counts", tagged[0][0].value == 6, tagged[0][0].value)


def tasks() -> None:
    arrived: queue.Queue = queue.Queue()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            arrived.put((dict(self.headers), body))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_args) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    channel = grpc.insecure_channel(os.environ["CLOUD_TASKS_EMULATOR_HOST"])
    client = tasks_v2.CloudTasksClient(transport=CloudTasksGrpcTransport(channel=channel))
    parent = f"projects/{PROJECT}/locations/us-central1"
    name = f"{parent}/queues/work"
    client.create_queue(parent=parent, queue={"name": name})
    target = {"url": f"http://127.0.0.1:{server.server_port}/", "body": b"hello", "headers": {"x-own": "1"}}
    client.create_task(parent=name, task={"name": f"{name}/tasks/first", "http_request": target})
    headers, body = arrived.get(timeout=LIMIT_SECONDS)
    holds("a task arrives with its body", body == b"hello", body)
    holds("it carries the service's headers", headers.get("X-CloudTasks-TaskName") == "first", headers)
    refused(
        "the name of a task is used once",
        exceptions.AlreadyExists,
        lambda: client.create_task(parent=name, task={"name": f"{name}/tasks/first", "http_request": target}),
    )
    later = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(days=29)
    scheduled = client.create_task(
        parent=name,
        task={
            "http_request": target,
            "schedule_time": timestamp_pb2.Timestamp(seconds=int(later.timestamp())),
            "dispatch_deadline": duration_pb2.Duration(seconds=60),
        },
    )
    holds("a scheduled task waits", [each.name for each in client.list_tasks(parent=name)] == [scheduled.name])
    client.delete_task(name=scheduled.name)
    refused("a deleted task is gone", exceptions.NotFound, lambda: client.get_task(name=scheduled.name))
    server.shutdown()


if __name__ == "__main__":
    pubsub()
    documents()
    tasks()
    moves(PROJECT, holds)
