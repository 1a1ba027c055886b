const s = require('../support.cjs');
const t = s.telemetry(require);
const { registerInstrumentations } = require('@opentelemetry/instrumentation');
const made = require('@traceloop/instrumentation-google-generativeai');
const Instrumentation = made.GenAIInstrumentation || made.GoogleGenerativeAIInstrumentation || Object.values(made).find(v => typeof v === 'function' && /Instrumentation/.test(v.name));
registerInstrumentations({ instrumentations: [new Instrumentation()] });
const { GoogleGenAI } = require('@google/genai');
const client = new GoogleGenAI({ apiKey: s.key, httpOptions: { baseUrl: s.MOCK } });
s.run(() => s.gemini(client), t.flush);
