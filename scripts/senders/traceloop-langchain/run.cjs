const s = require('../support.cjs');
const t = s.telemetry(require);
const { LangChainInstrumentation } = require('@traceloop/instrumentation-langchain');
new LangChainInstrumentation().manuallyInstrument({ callbackManagerModule: require('@langchain/core/callbacks/manager') });
s.run(() => s.langchain(require), t.flush);
