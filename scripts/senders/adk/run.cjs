const s = require('../support.cjs');
const t = s.telemetry(require);
const { LlmAgent, InMemoryRunner, Gemini } = require('@google/adk');
process.env.GOOGLE_GENAI_USE_VERTEXAI = 'false';
process.env.GOOGLE_GEMINI_BASE_URL = s.MOCK;
process.env.GEMINI_API_KEY = process.env.GOOGLE_API_KEY = s.key;
const { setDefaultBaseUrls } = require('@google/genai');
setDefaultBaseUrls({ geminiUrl: s.MOCK });
const agent = new LlmAgent({ name: 'planets', model: new Gemini({ model: 'gemini-2.5-flash', apiKey: s.key }), instruction: 'Answer.' });
const runner = new InMemoryRunner({ agent, appName: 'shop' });
s.run(async () => {
  const session = await runner.sessionService.createSession({ appName: 'shop', userId: 'ada' });
  for await (const _ of runner.runAsync({ userId: 'ada', sessionId: session.id, newMessage: { role: 'user', parts: [{ text: s.question }] }, runConfig: s.streams ? { streamingMode: 'sse' } : {} }));
}, t.flush);
