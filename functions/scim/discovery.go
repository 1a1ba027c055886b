package scim

import (
	"strings"

	"gateway/shared/admin"
	"gateway/shared/fault"
	"gateway/shared/signin/scim"
)

// discovery describes the service to clients: RFC 7644, 4.
func (f *family) discovery() []admin.Route {
	return []admin.Route{
		{Method: "GET", Path: "/scim/ServiceProviderConfig", Name: "getScimServiceProviderConfig", Doc: "Read the supported parts of the protocol.", Do: func(c *admin.Call) (any, error) { return providerConfig(f.base(c)), nil }},
		{Method: "GET", Path: "/scim/ResourceTypes", Name: "listScimResourceTypes", Doc: "Kinds of resources.", Do: func(c *admin.Call) (any, error) {
			all := resourceTypes(f.base(c))
			return listed(len(all), 1, all), nil
		}},
		{Method: "GET", Path: "/scim/ResourceTypes/{resourceType}", Name: "getScimResourceType", Doc: "One kind of resources.", Params: []admin.Field{{Name: "resourceType", Type: admin.String, Enum: []string{"User", "Group"}}}, Do: func(c *admin.Call) (any, error) {
			return byID(resourceTypes(f.base(c)), c.Param("resourceType"))
		}},
		{Method: "GET", Path: "/scim/Schemas", Name: "listScimSchemas", Doc: "Schemas of resources.", Do: func(c *admin.Call) (any, error) {
			all := schemas(f.base(c))
			return listed(len(all), 1, all), nil
		}},
		{Method: "GET", Path: "/scim/Schemas/{schemaUrn}", Name: "getScimSchema", Doc: "One schema.", Params: []admin.Field{{Name: "schemaUrn", Type: admin.String, Enum: []string{scim.UserURN, scim.EnterpriseURN, scim.GroupURN}}}, Do: func(c *admin.Call) (any, error) {
			return byID(schemas(f.base(c)), c.Param("schemaUrn"))
		}},
	}
}

func byID(all []map[string]any, id string) (any, error) {
	for _, one := range all {
		if s, _ := one["id"].(string); strings.EqualFold(s, id) {
			return one, nil
		}
	}
	return nil, fault.New(fault.NotFound, "", "there is no "+fault.Clip(id, 64))
}

func schemas(base string) (out []map[string]any) {
	for _, s := range scim.All() {
		out = append(out, s.Document(base+"/Schemas"))
	}
	return out
}

func resourceTypes(base string) []map[string]any {
	one := func(id, endpoint, schema, doc string) map[string]any {
		return map[string]any{
			"schemas": []string{"urn:ietf:params:scim:schemas:core:2.0:ResourceType"}, "id": id, "name": id, "endpoint": endpoint, "description": doc, "schema": schema,
			"meta": map[string]any{"resourceType": "ResourceType", "location": base + "/ResourceTypes/" + id},
		}
	}
	user := one("User", "/Users", scim.UserURN, "Users of the organisation")
	user["schemaExtensions"] = []any{map[string]any{"schema": scim.EnterpriseURN, "required": false}}
	return []map[string]any{user, one("Group", "/Groups", scim.GroupURN, "Groups of users")}
}

func providerConfig(base string) map[string]any {
	yes, no := map[string]any{"supported": true}, map[string]any{"supported": false}
	return map[string]any{
		"schemas": []string{"urn:ietf:params:scim:schemas:core:2.0:ServiceProviderConfig"},
		"patch":   yes, "sort": no, "etag": yes, "changePassword": no,
		"bulk":   map[string]any{"supported": false, "maxOperations": 0, "maxPayloadSize": 0},
		"filter": map[string]any{"supported": true, "maxResults": maxCount},
		"authenticationSchemes": []any{map[string]any{
			"type": "oauthbearertoken", "name": "Bearer token", "description": "A token of the organisation, made at /scim/tokens", "specUri": "https://www.rfc-editor.org/rfc/rfc6750", "primary": true,
		}},
		"meta": map[string]any{"resourceType": "ServiceProviderConfig", "location": base + "/ServiceProviderConfig"},
	}
}
