Handler plugins: a package adds an API, replaces versions of one, or stands around one; `kgateway plugins` lists them.
