const s = require('../support.cjs');
const t = s.telemetry(require);
const { LangChainInstrumentation } = require('@arizeai/openinference-instrumentation-langchain');
new LangChainInstrumentation().manuallyInstrument(require('@langchain/core/callbacks/manager'));
s.run(() => s.langchain(require), t.flush);
