"""
The messages of SeaweedFS and SeaweedMQ, as far as a gateway uses them.

The numbers and types in the `.proto` files are theirs; unused fields and messages are left out. Python's side is made
from the top of the checkout by grpcio-tools 1.72.2, whose output works with protobuf 6.30 and later:

    python -m grpc_tools.protoc -I. --python_out=. --pyi_out=. kgateway/broker/seaweed/protos/*.proto
"""
