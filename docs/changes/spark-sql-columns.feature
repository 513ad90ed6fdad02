`kgateway spark sql` reads no other columns of topics than those that the statement needs.
