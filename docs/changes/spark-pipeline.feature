A pipeline to try out: orders into a topic, sums by Spark into a topic and Parquet, SQL, and a picture, by one command.
