// Package files is the family of files that providers keep, or the gateway
// itself: with x-gateway-provider: gateway, or where nothing names a provider.
package files

import (
	"gateway/shared/dialect/openai"
	"gateway/shared/provider"
	"gateway/shared/relay"
)

// maxFile bounds an upload, in bytes: what OpenAI takes, and its form around it.
const maxFile = 512<<20 + 1<<20

// Routes are the family's routes.
func Routes() []relay.Route {
	return []relay.Route{
		{
			Method: "POST", Path: "/files", Endpoint: "uploadFile", BodyMode: relay.Multipart, Scope: "completions.write",
			Operation: provider.FilesUpload, CheckForm: check, NoModel: true, Free: true, NoOutput: true, BuiltIn: true, MaxBody: maxFile,
		},
		resource("GET", "/files", "listFiles", provider.FilesList),
		resource("GET", "/files/{id}", "retrieveFile", provider.FilesGet),
		resource("DELETE", "/files/{id}", "deleteFile", provider.FilesDelete),
		content(),
	}
}

func check(f relay.Form) error { return openai.CheckUpload(f) }

func resource(method, path, endpoint string, op provider.Operation) relay.Route {
	return relay.Route{
		Method: method, Path: path, Endpoint: endpoint, BodyMode: relay.Resource, Scope: "completions.write",
		Operation: op, NoModel: true, Free: true, NoOutput: true, BuiltIn: true,
	}
}

func content() relay.Route {
	r := resource("GET", "/files/{id}/content", "retrieveFileContent", provider.FilesContent)
	r.Binary = true
	return r
}
