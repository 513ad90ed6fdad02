`kgateway spark sql` asks topics in SQL, with their archives and logs as one table, exact at the seam, and shows what it finds, or writes it to files or a topic.
