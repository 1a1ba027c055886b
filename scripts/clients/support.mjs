// The client libraries, pointed at the gateway that the environment names:
// GATEWAY_URL (ends in /v1), GATEWAY_KEY (workspace key), GATEWAY_ADMIN_KEY.
import OpenAI from 'openai';
import Anthropic from '@anthropic-ai/sdk';

function need(name) {
  const value = process.env[name];
  if (!value) throw new Error(`${name} must be set`);
  return value;
}

export const gatewayURL = need('GATEWAY_URL');
export const gatewayKey = need('GATEWAY_KEY');

// openai gives a client whose requests go to a saved provider. Without a
// provider the body's model must name one.
export function openai(provider = '@mock', options = {}) {
  return new OpenAI({
    baseURL: gatewayURL,
    apiKey: gatewayKey,
    maxRetries: 0,
    timeout: 20_000,
    defaultHeaders: provider ? { 'x-gateway-provider': provider } : {},
    ...options,
  });
}

// anthropic signs in as other tools do: with the gateway's key as a bearer token.
export function anthropic(provider = '@mock-anthropic', options = {}) {
  return new Anthropic({
    baseURL: gatewayURL.replace(/\/v1$/, ''),
    apiKey: null,
    authToken: gatewayKey,
    maxRetries: 0,
    timeout: 20_000,
    defaultHeaders: { 'x-gateway-provider': provider },
    ...options,
  });
}

export const weather = {
  name: 'get_weather',
  description: 'The weather in a city',
  parameters: {
    type: 'object',
    properties: { city: { type: 'string' }, unit: { type: 'string', enum: ['celsius', 'fahrenheit'] } },
    required: ['city'],
  },
};

export const clock = { name: 'clock_now', description: 'The time', parameters: { type: 'object', properties: {} } };

export const asOpenAITool = (t) => ({ type: 'function', function: t });
export const asAnthropicTool = (t) => ({ name: t.name, description: t.description, input_schema: t.parameters });

export const person = {
  type: 'object',
  properties: { name: { type: 'string' }, age: { type: 'integer' }, tags: { type: 'array', items: { type: 'string' } } },
  required: ['name', 'age', 'tags'],
  additionalProperties: false,
};

// The targets that a client of one shape must be able to use alike. model is
// sent as it stands, provider as a header ('' for none).
export const openaiTargets = [
  { name: 'OpenAI model', provider: '@mock', model: 'gpt-4o-mini' },
  { name: 'OpenAI model named in the body', provider: '', model: '@mock/gpt-4o-mini' },
  { name: 'Anthropic model', provider: '@mock-anthropic', model: 'claude-sonnet-4-5' },
  { name: 'Anthropic model named in the body', provider: '', model: '@mock-anthropic/claude-sonnet-4-5' },
];

export const anthropicTargets = [
  { name: 'Anthropic model', provider: '@mock-anthropic', model: 'claude-sonnet-4-5' },
  { name: 'OpenAI model', provider: '@mock', model: 'gpt-4o-mini' },
];
