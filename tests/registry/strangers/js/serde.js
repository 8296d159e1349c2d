// @kafkajs/confluent-schema-registry, asked by lines of JSON: see serde_strangers.py for the questions.
const readline = require('node:readline')
const { createRequire } = require('node:module')

const [, , url, modules] = process.argv
const { SchemaRegistry, SchemaType } = createRequire(`${modules}/`)('@kafkajs/confluent-schema-registry')

const types = { AVRO: SchemaType.AVRO, JSON: SchemaType.JSON, PROTOBUF: SchemaType.PROTOBUF }

async function work(asked) {
  const registry = new SchemaRegistry({ host: url, retry: { retries: 0 } })
  if (asked.op === 'write') {
    const schema = { type: types[asked.type], schema: asked.schema }
    const { id } = await registry.register(schema, { subject: asked.subject })
    const bytes = await registry.encode(id, asked.value)
    return { bytes: bytes.toString('base64') }
  }
  const options = asked.schema ? { AVRO: { readerSchema: JSON.parse(asked.schema) } } : undefined
  const found = await registry.decode(Buffer.from(asked.bytes, 'base64'), options)
  // Whole numbers of 64 bits are objects in Protobuf's library.
  const plain = typeof found.toJSON === 'function' ? found.toJSON() : found
  return { value: plain }
}

async function main() {
  for await (const line of readline.createInterface({ input: process.stdin })) {
    let found
    try {
      found = await work(JSON.parse(line))
    } catch (error) {
      found = { error: `${error.name}: ${error.message}` }
    }
    console.log(JSON.stringify(found))
  }
}

main()
