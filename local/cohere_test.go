package main

import (
	"fmt"
	"strings"
)

// wired makes the saved provider @id of a provider type whose host is the mock
// below path; fields are further members of its configurations.
func (r *running) wired(id, path, fields string) {
	r.t.Helper()
	host := strings.TrimSuffix(r.mockBase(), "/v1") + path
	if fields != "" {
		fields = "," + fields
	}
	r.admin("POST", "/integrations", fmt.Sprintf(`{"name":%q,"slug":%q,"workspace_id":%q,"ai_provider_id":%q,"key":"mock-key","configurations":{"custom_host":%q%s}}`, id, id, r.workspace(), id, host, fields))
}
