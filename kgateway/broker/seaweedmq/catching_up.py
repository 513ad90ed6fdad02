"""
Brings what is kept of a topic up to the partitions that SeaweedMQ has, by way of those which nobody has kept and whose
files are there.
"""

from twisted.logger import Logger

from kgateway.broker.seaweed.filer import Filer
from kgateway.broker.seaweed.protos.messaging_pb2 import ConfigureTopicResponse
from kgateway.broker.seaweedmq.ends import Ends
from kgateway.broker.seaweedmq.generations import Missed, missed, todays
from kgateway.broker.seaweedmq.kept_topic import KeptTopic
from kgateway.broker.seaweedmq.layout import generation_name, topic_folder

_log = Logger()


async def caught_up(
    filer: Filer, namespace: str, name: str, kept: KeptTopic, conf: ConfigureTopicResponse, ends: Ends
) -> KeptTopic:
    """
    What is to be kept of the topic today. Each partition goes on where the one of its index ended.
    """
    today = todays(conf)
    found = await missed(filer, topic_folder(name, namespace), kept, today)
    made = [*found.generations, today]
    for number, each in enumerate(made):
        later = {part for one in made[number:] for part in one.parts}
        offsets = await ends.ends(name, kept, later)
        # Of what others made all is shown from the first message on, which may be any.
        firsts = await ends.firsts(name, kept, each) if kept.generations or not kept.found else ()
        kept = kept.grown(each.unix_time_ns, each.parts, offsets, firsts)
    _tell(name, found)
    return kept


def _tell(name: str, found: Missed) -> None:
    for unix_time_ns, parts in found.generations:
        _log.warn(
            "topic {name} had {count} partitions in {folder}, of which nobody knew; what is there is shown",
            name=name,
            count=len(parts),
            folder=generation_name(unix_time_ns),
        )
    if found.left_out:
        _log.error(
            "topic {name}: nobody knows which records came before and after those in {folders}; they are not shown",
            name=name,
            folders=", ".join(found.left_out),
        )
