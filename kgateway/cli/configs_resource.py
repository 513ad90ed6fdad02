"""
What has configs, as people name it.
"""

from argparse import ArgumentParser, Namespace
from functools import partial

from kgateway.cli.named import chosen
from kgateway.client.cluster import Cluster
from kgateway.client.configs import KINDS, Resource
from kgateway.client.topics import topics


def add_resource(parser: ArgumentParser) -> None:
    """
    Its kind and its name.
    """
    parser.add_argument("of", metavar="KIND", choices=[*KINDS], help=f"one of {', '.join(KINDS)}")
    parser.add_argument("name", metavar="NAME", help="the name of a topic, the id of a broker or of a group")


def resource(options: Namespace, cluster: Cluster) -> Resource:
    """
    The one that is meant; Refused where it is a topic that is not there. Groups have configs before they are there.
    """
    if options.of == "topic":
        return topic_resource(options.name, cluster)
    return Resource(options.of, options.name)


def topic_resource(name: str, cluster: Cluster) -> Resource:
    """
    A topic that is there.
    """
    [topic] = chosen(cluster.settled(partial(topics, cluster)), [name])
    return Resource("topic", topic.name)
