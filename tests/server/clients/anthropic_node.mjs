// A conversation by Anthropic's client for Node. Arguments: the folder of the client, the base URL, headers as JSON.
// Each line of stdin is the next turn, each line of stdout its answer.
import readline from "node:readline";

const [folder, baseURL, headers] = process.argv.slice(2);
const { default: Anthropic } = await import(`${folder}/index.mjs`);
const client = new Anthropic({
  baseURL,
  apiKey: "a-key",
  maxRetries: 0,
  defaultHeaders: JSON.parse(headers),
});
const input_schema = { type: "object", properties: { pier: { type: "integer" } } };
const messages = [];

async function ask(stream) {
  const body = {
    model: "claude-sonnet-5",
    max_tokens: 4000,
    thinking: { type: "enabled", budget_tokens: 2000 },
    tools: [{ name: "find", input_schema }],
    messages,
  };
  const { content } = stream
    ? await client.messages.stream(body).finalMessage()
    : await client.messages.create(body);
  messages.push({ role: "assistant", content });
  return content;
}

for await (const line of readline.createInterface({ input: process.stdin })) {
  const { text, image, stream } = JSON.parse(line);
  const content = [{ type: "text", text }];
  if (image) {
    const [media_type, data] = image.slice("data:".length).split(";base64,");
    content.push({ type: "image", source: { type: "base64", media_type, data } });
  }
  messages.push({ role: "user", content });
  let answer = await ask(stream);
  const calls = answer.filter((block) => block.type === "tool_use");
  if (calls.length) {
    const results = calls.map((call) => ({
      type: "tool_result",
      tool_use_id: call.id,
      content: `found ${JSON.stringify(call.input)}`,
    }));
    messages.push({ role: "user", content: results });
    answer = await ask(stream);
  }
  const texts = answer.filter((block) => block.type === "text").map((block) => block.text);
  console.log(JSON.stringify(texts.join("")));
}
