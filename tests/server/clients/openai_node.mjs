// A conversation by OpenAI's client for Node. Arguments: the folder of the client, the base URL, headers as JSON.
// Each line of stdin is the next turn, each line of stdout its answer.
import readline from "node:readline";

const [folder, baseURL, headers] = process.argv.slice(2);
const { default: OpenAI } = await import(`${folder}/index.mjs`);
const client = new OpenAI({
  baseURL,
  apiKey: "a-key",
  maxRetries: 0,
  defaultHeaders: JSON.parse(headers),
});
const parameters = { type: "object", properties: { pier: { type: "integer" } } };
const tools = [{ type: "function", function: { name: "find", parameters } }];
const messages = [];

async function ask(stream) {
  const body = { model: "gpt-5", messages, tools };
  const completion = stream
    ? await client.chat.completions.stream(body).finalChatCompletion()
    : await client.chat.completions.create(body);
  const { role, content, tool_calls } = completion.choices[0].message;
  const message = { role, content, ...(tool_calls?.length && { tool_calls }) };
  messages.push(message);
  return message;
}

for await (const line of readline.createInterface({ input: process.stdin })) {
  const { text, image, stream } = JSON.parse(line);
  const shown = { type: "image_url", image_url: { url: image } };
  messages.push({ role: "user", content: image ? [{ type: "text", text }, shown] : text });
  let answer = await ask(stream);
  if (answer.tool_calls) {
    for (const call of answer.tool_calls) {
      const content = `found ${call.function.arguments}`;
      messages.push({ role: "tool", tool_call_id: call.id, content });
    }
    answer = await ask(stream);
  }
  console.log(JSON.stringify(answer.content));
}
