# The settings of streaming: their defaults, which values they take, and what an unknown one gives.
for name in [
    "aggregation.stateFormatVersion",
    "checkpointLocation",
    "fileSource.log.cleanupDelay",
    "forceDeleteTempCheckpointLocation",
    "maxBatchesToRetainInMemory",
    "minBatchesToRetain",
    "multipleWatermarkPolicy",
    "noDataMicroBatches.enabled",
    "noDataProgressEventInterval",
    "numRecentProgressUpdates",
    "pollingDelay",
    "ratioExtraSpaceAllowedInCheckpoint",
    "realTimeMode.minBatchDuration",
    "schemaInference",
    "stateStore.compression.codec",
    "stateStore.maintenanceInterval",
    "stateStore.minDeltasForSnapshot",
    "stateStore.providerClass",
    "stateStore.stateSchemaCheck",
    "statefulOperator.allowMultiple",
    "statefulOperator.checkCorrectness.enabled",
    "stopActiveRunOnRestart",
    "stopTimeout",
    "transformWithState.stateSchemaVersion",
    "ui.retainedQueries",
]:
    print(name, canon(spark.conf.get("spark.sql.streaming." + name)))
error(lambda: spark.conf.get("spark.sql.streaming.noSuchSetting"), "an unknown one")
for name, value in [
    ("minBatchesToRetain", "many"),
    ("minBatchesToRetain", "5"),
    ("noDataProgressEventInterval", "5s"),
    ("noDataProgressEventInterval", "5 apples"),
    ("stopTimeout", "1min"),
    ("pollingDelay", "100"),
    ("multipleWatermarkPolicy", "MAX"),
    ("multipleWatermarkPolicy", "median"),
    ("stateStore.stateSchemaCheck", "perhaps"),
    ("stateStore.maintenanceInterval", "2m"),
    ("stateStore.minDeltasForSnapshot", "1.5"),
    ("fileSource.log.cleanupDelay", "1h"),
    ("ratioExtraSpaceAllowedInCheckpoint", "a half"),
    ("noDataMicroBatches.enabled", "FALSE"),
    ("ui.retainedQueries", "5"),
]:
    key = "spark.sql.streaming." + name
    try:
        spark.conf.set(key, value)
        print(name, repr(value), "taken")
        spark.conf.unset(key)
    except PySparkException as e:
        print(name, repr(value), "ERROR", condition(e), e.getSqlState() or "-")
print(canon(spark.conf.get("spark.sql.streaming.minBatchesToRetain")))
