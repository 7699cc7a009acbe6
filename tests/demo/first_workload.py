# The tutorial: JSON files through Auto Loader into a Delta table, with the file of each row and the time of its batch.
import os
import sys

work = sys.argv[1]
file_path = work + "/databricks-datasets/structured-streaming/events"
checkpoint_path = work + "/ss-tutorial/_checkpoint"

raw_df = (spark.readStream
    .format("cloudFiles")
    .option("cloudFiles.format", "json")
    .option("cloudFiles.schemaLocation", checkpoint_path)
    .load(file_path)
)

from pyspark.sql.functions import col, current_timestamp

transformed_df = (raw_df.select(
    "*",
    col("_metadata.file_path").alias("source_file"),
    current_timestamp().alias("processing_time")
    )
)

target_path = work + "/ss-tutorial/"

query = (transformed_df.writeStream
    .trigger(availableNow=True)
    .option("checkpointLocation", checkpoint_path)
    .option("path", target_path)
    .start()
)
query.awaitTermination()

print("rows ingested by this run:", sum(p.numInputRows for p in query.recentProgress))
table = spark.read.format("delta").load(target_path)
print("rows in the table:", table.count())
table.groupBy("action").count().orderBy("action").show()
table.orderBy("time").show(5, truncate=40)
