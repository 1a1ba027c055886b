package webhooks

import (
	"fmt"
	"strings"
	"testing"

	"gateway/shared/tenant"
	"gateway/shared/testkit/admintest"
)

const goodDestination = `{"name":"Ours","endpoint":"https://collector.example.com/otlp","headers":"authorization=Bearer%20very-secret-token","signals":["traces"],"include_content":true,"resource_attributes":{"service.name":"ai"}}`

func TestDestinationsStoreTheirHeadersSealed(t *testing.T) {
	t.Parallel()
	h := newInstallation(t)
	id := h.Do("POST", telemetryPath, key, goodDestination).OK().Text("id")
	read := h.Do("GET", telemetryPath+"/"+id, key, nil).OK()
	if read.At("endpoint") != "https://collector.example.com/otlp" || read.At("status") != "active" || read.At("include_content") != true || read.At("masked_headers") == nil {
		t.Errorf("%s", read.Body)
	}
	for _, answer := range []string{string(read.Body), string(h.Do("GET", telemetryPath, key, nil).OK().Body)} {
		if strings.Contains(answer, "very-secret") {
			t.Errorf("headers are read back: %s", answer)
		}
	}
	h.Do("PUT", telemetryPath+"/"+id, key, `{"headers":null,"status":"disabled"}`).OK()
	if read := h.Do("GET", telemetryPath+"/"+id, key, nil).OK(); read.At("masked_headers") != nil || read.At("status") != "disabled" {
		t.Errorf("%s", read.Body)
	}
	for _, of := range []struct{ method, body string }{{"GET", ""}, {"PUT", `{"name":"x"}`}, {"DELETE", ""}} {
		for _, stranger := range []string{admintest.OtherAdmin, admintest.WorkspaceB} {
			there, missing := h.Do(of.method, telemetryPath+"/"+id, stranger, of.body), h.Do(of.method, telemetryPath+"/00000000-0000-4000-8000-000000000000", stranger, of.body)
			if there.Comparable() != missing.Comparable() || there.Status != 404 {
				t.Errorf("%s by a stranger: %s, of a missing one %s", of.method, there.Comparable(), missing.Comparable())
			}
		}
	}
	admintest.BadBodies(t, h.Installation, "POST", telemetryPath, key, goodDestination)
	admintest.BadBodies(t, h.Installation, "PUT", telemetryPath+"/"+id, key, `{"name":"x"}`)
	h.Do("DELETE", telemetryPath+"/"+id, key, nil).OK()
}

func TestDestinationsThatCannotBe(t *testing.T) {
	t.Parallel()
	h := newInstallation(t)
	for field, body := range map[string]string{
		"endpoint":                         `{"name":"x"}`,
		"endpoint ":                        `{"name":"x","endpoint":"http://169.254.169.254/"}`,
		"endpoint  ":                       `{"name":"x","endpoint":"https://c.example.com/?a=b"}`,
		"headers":                          `{"name":"x","endpoint":"https://c.example.com","headers":"nothing"}`,
		"headers ":                         `{"name":"x","endpoint":"https://c.example.com","headers":"host=a"}`,
		"signals":                          `{"name":"x","endpoint":"https://c.example.com","signals":["logs"]}`,
		"signals[1]":                       `{"name":"x","endpoint":"https://c.example.com","signals":["traces","traces"]}`,
		"include_content":                  `{"name":"x","endpoint":"https://c.example.com","include_content":"yes"}`,
		"resource_attributes":              `{"name":"x","endpoint":"https://c.example.com","resource_attributes":{"a":1}}`,
		"semconv_stability_opt_in":         `{"name":"x","endpoint":"https://c.example.com","semconv_stability_opt_in":7}`,
		"resource_attributes.service.name": fmt.Sprintf(`{"name":"x","endpoint":"https://c.example.com","resource_attributes":{"service.name":%q}}`, strings.Repeat("a", 256)),
	} {
		a := h.Do("POST", telemetryPath, key, body)
		if a.Status != 400 || !strings.Contains(string(a.Body), strings.TrimSpace(field)) {
			t.Errorf("%s: %d %s", body, a.Status, a.Body)
		}
	}
	for n := range maxDestinations {
		h.Do("POST", telemetryPath, key, fmt.Sprintf(`{"name":"d%d","endpoint":"https://c.example.com"}`, n)).OK()
	}
	is(t, 409, h.Do("POST", telemetryPath, key, goodDestination))
	h.Do("POST", telemetryPath, chief, goodDestination).OK() // the organization's are counted for themselves
}

func TestHeadersOfDestinationsStayAtTheirEndpoint(t *testing.T) {
	t.Parallel()
	h := newInstallation(t)
	at := telemetryPath + "/" + h.Do("POST", telemetryPath, key, goodDestination).OK().Text("id")
	h.Do("PUT", at, key, `{"endpoint":"https://attacker.example.com"}`).RequireFault(400, "AB01", "endpoint")
	h.Do("PUT", at, key, `{"endpoint":"https://collector.example.com/otlp/","name":"y"}`).OK()
	h.Do("PUT", at, key, `{"endpoint":"https://other.example.com","headers":"authorization=Bearer%20again"}`).OK()
	h.Do("PUT", at, key, `{"endpoint":"https://collector.example.com","headers":null}`).OK()
	h.Do("PUT", at, key, `{"endpoint":"https://other.example.com"}`).OK()
}

// Content is sent only if the author of the destination may read the bodies of all users: at
// creation, and with every later change that leaves it enabled.
func TestContentNeedsTheRightToReadAllBodies(t *testing.T) {
	t.Parallel()
	no := false
	for name, c := range map[string]struct {
		rights tenant.RolePermissions
		scopes []string
		denied bool
	}{
		"all rights":             {denied: false},
		"no bodies":              {rights: tenant.RolePermissions{ManagersViewLogs: &no}, denied: true},
		"no data of others":      {rights: tenant.RolePermissions{ManagersViewAllData: &no}, denied: true},
		"a key that reads none":  {scopes: []string{"workspace_telemetry.create", "workspace_telemetry.update"}, denied: true},
		"a key that reads logs":  {scopes: []string{"workspace_telemetry.create", "workspace_telemetry.update", "logs.view"}, denied: false},
		"a key that lists alone": {scopes: []string{"workspace_telemetry.create", "workspace_telemetry.update", "logs.list"}, denied: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newInstallation(t)
			by := admintest.ManagerKey
			if c.scopes != nil {
				by = "key-some-scopes"
				of := h.Caller(key)
				of.Scopes = admintest.ScopeList(c.scopes)
				h.SetCaller(by, of)
			}
			h.SetSettings(tenant.Settings{RolePermissions: c.rights})
			try := func(a admintest.Response) {
				t.Helper()
				if c.denied {
					a.RequireFault(403, "AB03", "include_content")
				} else {
					a.OK()
				}
			}
			try(h.Do("POST", telemetryPath, by, goodDestination))
			off := strings.Replace(goodDestination, `"include_content":true`, `"include_content":false`, 1)
			own := telemetryPath + "/" + h.Do("POST", telemetryPath, key, off).OK().Text("id")
			try(h.Do("PUT", own, by, `{"include_content":true,"endpoint":"https://collector.example.com/otlp","headers":null}`))
			of := telemetryPath + "/" + h.Do("POST", telemetryPath, key, goodDestination).OK().Text("id")
			try(h.Do("PUT", of, by, `{"name":"y"}`))
			try(h.Do("PUT", of, by, `{"endpoint":"https://attacker.example.com","headers":null}`))
			h.Do("PUT", of, by, `{"status":"disabled"}`).OK()
			try(h.Do("PUT", of, by, `{"status":"active"}`))
			h.Do("PUT", of, by, `{"include_content":false}`).OK()
		})
	}
}
