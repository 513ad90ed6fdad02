`kgateway spark report` shows what is in topics, and how old, large and late it is, as one page of HTML with plots.
