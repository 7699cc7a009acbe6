"""Sends numbered records to partition 0 of a topic at a steady rate: produce.py BROKER TOPIC RATE COUNT SENT.

Record 0 makes the topic; then it waits for a line on its input. SENT gets a line for each later record: the nanoseconds of
its send and of the broker's acknowledgement.
"""

import sys
import time

from confluent_kafka import Producer

broker, topic, rate, count, sent_path = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5]
producer = Producer({"bootstrap.servers": broker, "linger.ms": 1})
producer.produce(topic, b"0", partition=0)
producer.flush()
print("ready", flush=True)
sys.stdin.readline()
sent, taken, start = [], {}, time.perf_counter()
for record in range(1, count + 1):
    time.sleep(max(0, start + record / rate - time.perf_counter()))
    sent.append(time.time_ns())
    producer.produce(topic, str(record).encode(), partition=0, on_delivery=lambda _, message: taken.__setitem__(int(message.value()), time.time_ns()))
    producer.poll(0)
producer.flush()
with open(sent_path, "w") as out:
    out.writelines("%d %d\n" % (at, taken[record]) for record, at in enumerate(sent, 1))
