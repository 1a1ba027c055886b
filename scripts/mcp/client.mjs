// The client that the suite starts for each scenario. It hands the scenario to the test
// that stands behind the gateway, and ends as that says.
//
//	node client.mjs <address of the test> <address of the suite's server>
const [, , test, server] = process.argv;
const { MCP_CONFORMANCE_SCENARIO: scenario, MCP_CONFORMANCE_CONTEXT: context } = process.env;
const answer = await fetch(test, { method: 'POST', body: JSON.stringify({ server, scenario, context: context ? JSON.parse(context) : {} }) });
console.log(await answer.text());
process.exitCode = answer.ok ? 0 : 1;
