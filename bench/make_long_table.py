#!/usr/bin/env python3
"""A Delta table whose log says that it has very many files. The data files themselves are not there: what is measured is
the log.

  make_long_table.py FOLDER [--files 100000] [--commits 10] [--partitions 0]

Writes `files` files with statistics in `commits` commits of the same size.
"""

import argparse
import json
import os

SCHEMA = {
    "type": "struct",
    "fields": [
        {"name": "id", "type": "long", "nullable": True, "metadata": {}},
        {"name": "name", "type": "string", "nullable": True, "metadata": {}},
        {"name": "day", "type": "integer", "nullable": True, "metadata": {}},
    ],
}


def add(number, partitions):
    day = number % partitions if partitions else None
    low, high = number * 1000, number * 1000 + 999
    stats = {
        "numRecords": 1000,
        "minValues": {"id": low, "name": "name-%012d" % low},
        "maxValues": {"id": high, "name": "name-%012d" % high},
        "nullCount": {"id": 0, "name": 0},
    }
    return {
        "add": {
            "path": ("day=%d/" % day if partitions else "") + "part-%08d-3e6b2f0a-0000-4000-8000-%012d.parquet" % (number, number),
            "partitionValues": {"day": str(day)} if partitions else {},
            "size": 40000 + number % 1000,
            "modificationTime": 1700000000000 + number,
            "dataChange": True,
            "stats": json.dumps(stats, separators=(",", ":")),
        }
    }


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--files", type=int, default=100000)
    parser.add_argument("--commits", type=int, default=10)
    parser.add_argument("--partitions", type=int, default=0)
    asked = parser.parse_args()
    log = os.path.join(asked.folder, "_delta_log")
    os.makedirs(log)
    first = [
        {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}},
        {
            "metaData": {
                "id": "7c3a1b9e-0000-4000-8000-000000000001",
                "format": {"provider": "parquet", "options": {}},
                "schemaString": json.dumps(SCHEMA),
                "partitionColumns": ["day"] if asked.partitions else [],
                "configuration": {},
                "createdTime": 1700000000000,
            }
        },
    ]
    number = 0
    for version in range(asked.commits):
        end = asked.files * (version + 1) // asked.commits
        with open(os.path.join(log, "%020d.json" % version), "w") as out:
            info = {"timestamp": 1700000000000 + version, "operation": "WRITE", "operationParameters": {}}
            for action in [{"commitInfo": info}] + (first if version == 0 else []):
                out.write(json.dumps(action, separators=(",", ":")) + "\n")
            while number < end:
                out.write(json.dumps(add(number, asked.partitions), separators=(",", ":")) + "\n")
                number += 1


if __name__ == "__main__":
    main()
