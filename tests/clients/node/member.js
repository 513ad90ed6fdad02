// A group member with kafkajs; see tests/clients/groups/members/reports.py.

const { writeSync } = require('fs')
const { AssignerProtocol, Kafka, logLevel } = require('kafkajs')

const { MemberAssignment, MemberMetadata } = AssignerProtocol

const now = () => Date.now() / 1000
const place = (topic, partition) => `${topic}:${partition}`

function tell(event, of = {}) {
  writeSync(1, JSON.stringify({ at: now(), told: event, ...of }) + '\n')
}

// The library's only assigner is unknown to other clients.
const range = ({ cluster }) => ({
  name: 'range',
  version: 0,

  protocol({ topics }) {
    return { name: this.name, metadata: MemberMetadata.encode({ version: this.version, topics }) }
  },

  async assign({ members, topics }) {
    const ids = members.map(member => member.memberId).sort()
    const assignments = Object.fromEntries(ids.map(id => [id, {}]))
    for (const topic of topics) {
      const partitions = cluster.findTopicPartitionMetadata(topic).map(found => found.partitionId).sort((a, b) => a - b)
      const least = Math.floor(partitions.length / ids.length)
      const longer = partitions.length % ids.length
      ids.forEach((id, i) => {
        assignments[id][topic] = partitions.splice(0, least + (i < longer ? 1 : 0))
      })
    }
    return ids.map(memberId => ({
      memberId,
      memberAssignment: MemberAssignment.encode({ version: this.version, assignment: assignments[memberId] }),
    }))
  },
})

async function work(workMs, { batch, heartbeat, commitOffsetsIfNecessary, isRunning, isStale }) {
  if (!isRunning() || isStale() || batch.messages.length === 0) return
  const where = place(batch.topic, batch.partition)
  tell('processed', { offsets: { [where]: batch.messages.map(message => Number(message.offset)) } })
  const offset = Number(batch.lastOffset()) + 1
  await new Promise(resolve => setTimeout(resolve, workMs))
  const what = { offsets: { [where]: offset }, since: now() }
  try {
    await commitOffsetsIfNecessary({
      topics: [{ topic: batch.topic, partitions: [{ partition: batch.partition, offset: `${offset}` }] }],
    })
  } catch (error) {
    tell('refused', { ...what, code: error.code ?? -1, why: `${error}` })
    throw error // the library joins again if necessary
  }
  tell('committed', what)
  await heartbeat()
}

async function main() {
  const how = JSON.parse(process.argv[2])
  const kafka = new Kafka({
    clientId: 'member',
    brokers: [how.bootstrap],
    logLevel: logLevel.NOTHING,
    retry: { initialRetryTime: 50, maxRetryTime: 500, retries: 1000 },
  })
  const consumer = kafka.consumer({
    groupId: how.group,
    partitionAssigners: [range],
    sessionTimeout: how.session_timeout_ms,
    heartbeatInterval: how.heartbeat_interval_ms,
    metadataMaxAge: 1000,
    maxWaitTimeInMs: 100,
  })
  let owned = []
  const revoke = () => {
    if (owned.length > 0) tell('revoked', { partitions: owned })
    owned = []
  }
  const { CRASH, GROUP_JOIN, REBALANCING } = consumer.events
  consumer.on(REBALANCING, revoke)
  consumer.on(GROUP_JOIN, ({ payload }) => {
    revoke() // the library does not announce every revocation
    owned = Object.entries(payload.memberAssignment).flatMap(([topic, found]) => found.map(i => place(topic, i)))
    tell('assigned', { partitions: owned, member: payload.memberId })
  })
  consumer.on(CRASH, ({ payload }) => {
    tell('failed', { code: -1, why: `${payload.error}` })
    if (!payload.restart) process.exit(1)
  })
  await consumer.connect()
  await consumer.subscribe({ topics: how.topics, fromBeginning: true })
  const leave = new Promise(resolve => {
    process.stdin.once('data', resolve)
    process.stdin.once('end', resolve)
  })
  await consumer.run({ autoCommit: false, eachBatchAutoResolve: true, eachBatch: found => work(how.work_ms, found) })
  await leave
  tell('leaving')
  await consumer.disconnect()
  tell('left')
  process.exit(0)
}

main().catch(error => {
  tell('failed', { code: -1, why: `${error}` })
  process.exit(1)
})
