// Package shape turns what the versions of the agent protocol write into each other:
// requests and answers of 1.0, of 0.3 as JSON-RPC has them, and of 0.3 as HTTP+JSON has
// them, which is another form. That of 1.0 stands in the middle.
//
//	0.3 JSON-RPC   {"kind":"message","role":"user","parts":[{"kind":"text","text":""}]}
//	0.3 HTTP+JSON  {"role":"ROLE_USER","content":[{"text":""}]}
//	1.0            {"role":"ROLE_USER","parts":[{"text":""}]}
//
// Members that are not known stay where they are.
package shape
