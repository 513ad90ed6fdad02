Archives of topics may lie in a filer of SeaweedFS: `kgateway spark archive --into http://filer:8888/archives`, and verify, sql and compact read them there.
