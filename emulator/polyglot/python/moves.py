"""Google's Python subscriber while the stack's clock is moved: what it answers is neither delivered again nor dead-lettered.

The control API's address comes from LOCAL_STACK_CONTROL. Run last: the clock never goes back.
"""

import collections
import datetime
import http.server
import json
import os
import threading
import time
import urllib.request

import grpc
from google.cloud import pubsub_v1, tasks_v2
from google.cloud.tasks_v2.services.cloud_tasks.transports import CloudTasksGrpcTransport
from google.protobuf import timestamp_pb2

LIMIT_SECONDS = 60
CONTROL = os.environ["LOCAL_STACK_CONTROL"]


def control(method: str, path: str, body: dict | None = None) -> dict:
    data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(urllib.request.Request(CONTROL + path, data, method=method), timeout=300) as answer:
        return json.load(answer)


def advance(by: str) -> None:
    control("POST", "/clock/advance", {"by": by})


def until(condition) -> None:
    for _ in range(LIMIT_SECONDS * 100):
        if condition():
            return
        time.sleep(0.01)
    raise AssertionError(f"it did not come true within {LIMIT_SECONDS} seconds")


class Subscriber:
    """A subscription of its own with a dead-letter policy of five attempts, and what has arrived on it."""

    def __init__(self, project: str, name: str, settle) -> None:
        self.publisher = pubsub_v1.PublisherClient()
        self.client = pubsub_v1.SubscriberClient()
        self.topic = self.publisher.topic_path(project, name)
        self.path = self.client.subscription_path(project, name)
        self.dead = self.client.subscription_path(project, f"{name}-dead")
        dead_topic = self.publisher.topic_path(project, f"{name}-dead")
        never = {"expiration_policy": {}}
        self.publisher.create_topic(name=self.topic)
        self.publisher.create_topic(name=dead_topic)
        self.client.create_subscription(request={"name": self.dead, "topic": dead_topic, **never})
        policy = {"dead_letter_topic": dead_topic, "max_delivery_attempts": 5}
        retry = {"minimum_backoff": {"seconds": 10}, "maximum_backoff": {"seconds": 600}}
        self.client.create_subscription(
            request={"name": self.path, "topic": self.topic, "dead_letter_policy": policy, "retry_policy": retry, **never}
        )
        self.arrived: list = []
        self.lock = threading.Lock()

        def callback(message) -> None:
            with self.lock:
                self.arrived.append((message.message_id, message.delivery_attempt))
            settle(message)

        self.stream = self.client.subscribe(self.path, callback)

    def publish(self, count: int) -> None:
        for sent in [self.publisher.publish(self.topic, b"x") for _ in range(count)]:
            sent.result(timeout=LIMIT_SECONDS)

    def settled(self, count: int) -> None:
        def over() -> bool:
            return len(self.arrived) >= count and control("GET", "/state")["pubsub"]["outstanding"] == 0

        until(over)

    def close(self) -> tuple:
        """The arrivals by message, how often there were so many of one, the attempts, and the dead letters."""
        self.stream.cancel()
        self.stream.result(timeout=LIMIT_SECONDS)
        dead = self.client.pull(subscription=self.dead, max_messages=1000, return_immediately=True)
        each = collections.Counter(message_id for message_id, _ in self.arrived)
        attempts = sorted({attempt for _, attempt in self.arrived})
        return len(each), sorted(set(each.values())), attempts, len(dead.received_messages)


def moves(project: str, holds) -> None:
    at_once = Subscriber(project, "moved-before", lambda message: message.ack())
    at_once.publish(600)
    advance("45d")
    at_once.settled(600)
    seen = at_once.close()
    holds("600 messages published just before a move of 45 days arrive once", seen == (600, [1], [1], 0), seen)

    during = Subscriber(project, "moved-during", lambda message: message.ack())
    publish_later(project, during, 20)
    advance("45d")
    during.settled(20)
    seen = during.close()
    holds("messages published during a move arrive once", seen == (20, [1], [1], 0), seen)

    nacked = Subscriber(
        project, "moved-nacks", lambda message: message.ack() if message.delivery_attempt == 3 else message.nack()
    )
    nacked.publish(20)
    advance("1d")
    nacked.settled(60)
    seen = nacked.close()
    holds("a nack on its way is an attempt, and its backoff is in the same move", seen == (20, [3], [1, 2, 3], 0), seen)

    def slow(message) -> None:
        time.sleep(5)
        message.ack()

    slower = Subscriber(project, "moved-slow", slow)
    slower.publish(5)
    until(lambda: len(slower.arrived) == 5)
    advance("45d")
    slower.settled(5)
    messages, times, attempts, dead = slower.close()
    holds(
        "a slow subscriber gets a message at most once more for a move, and no attempt is counted",
        messages == 5 and times[-1] <= 2 and attempts == [1] and dead == 0,
        (messages, times, attempts, dead),
    )


def publish_later(project: str, subscriber: Subscriber, count: int) -> None:
    """Tasks seven minutes apart, each of which publishes a message."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            subscriber.publish(1)
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_args) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    channel = grpc.insecure_channel(os.environ["CLOUD_TASKS_EMULATOR_HOST"])
    client = tasks_v2.CloudTasksClient(transport=CloudTasksGrpcTransport(channel=channel))
    parent = f"projects/{project}/locations/us-central1"
    queue = f"{parent}/queues/moved"
    client.create_queue(parent=parent, queue={"name": queue})
    now = control("GET", "/clock")["nowMs"] / 1000
    for n in range(count):
        at = now + datetime.timedelta(days=1, minutes=7 * n).total_seconds()
        client.create_task(
            parent=queue,
            task={
                "http_request": {"url": f"http://127.0.0.1:{server.server_port}/"},
                "schedule_time": timestamp_pb2.Timestamp(seconds=int(at)),
            },
        )
