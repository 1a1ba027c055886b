package vendors

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha1"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"

	"gateway/shared/guard/judge"
	"gateway/shared/provider"
)

// target returns a provider for the request signing of a check. Credentials of a check in a
// request are the caller's; only checks of saved guardrails may use the gateway's identity.
func (a *vendorCall) target(id string, fields map[string]string) *provider.Target {
	row, _ := provider.ByID(id)
	t := &provider.Target{Provider: row, Credential: provider.Credential{Fields: map[string]string{}}, Signer: a.run.Signer, CallerKey: !a.run.s.Saved, Saved: a.run.s.Saved}
	for field, from := range fields {
		if v, ok := a.run.creds[from].(string); ok && v != "" {
			t.Credential.Fields[field] = v
		}
	}
	return t
}

// awsFields are the credentials of a check, by the names of the catalog.
var awsFields = map[string]string{
	"aws_access_key_id": "awsAccessKeyId", "aws_secret_access_key": "awsSecretAccessKey", "aws_session_token": "awsSessionToken", "aws_region": "awsRegion",
	"aws_auth_type": "awsAuthType", "aws_role_arn": "awsRoleArn", "aws_external_id": "awsExternalId",
}

// signAWS signs with AWS Signature Version 4, for the service bedrock.
func signAWS(ctx context.Context, a *vendorCall, req *http.Request, body []byte) error {
	return a.target("bedrock", awsFields).Authorize(ctx, req, body)
}

var azureFields = map[string]string{
	"azure_entra_tenant_id": "tenantId", "azure_entra_client_id": "clientId", "azure_entra_client_secret": "clientSecret", "azure_managed_client_id": "clientId", "azure_auth_mode": "azureAuthMode",
}

// signAzure sends the resource's key, or an Entra token for it.
func signAzure(ctx context.Context, a *vendorCall, req *http.Request, body []byte) error {
	if mode, _ := a.run.creds["azureAuthMode"].(string); mode == "" || mode == "apiKey" {
		return nil // the row's headers have it
	}
	req.Header.Del("Ocp-Apim-Subscription-Key")
	return a.target("azure-openai", azureFields).Authorize(ctx, req, body)
}

// azureReady returns the base of the resource's address.
func azureReady(c *check) *judge.Failure {
	host, _ := c.creds["customHost"].(string)
	name, _ := c.creds["resourceName"].(string)
	mode, _ := c.creds["azureAuthMode"].(string)
	key, _ := c.creds["apiKey"].(string)
	switch {
	case host == "" && (name == "" || strings.Trim(strings.ToLower(name), "abcdefghijklmnopqrstuvwxyz0123456789-") != ""):
		return c.fails(judge.CredentialsError, "needs credentials.%s.resourceName, letters, digits and dashes", c.nest)
	case key == "" && (mode == "" || mode == "apiKey"):
		return c.fails(judge.CredentialsError, "needs credentials.%s.apiKey, or azureAuthMode entra or managed", c.nest)
	case host == "":
		host = "https://" + name + ".cognitiveservices.azure.com"
	}
	c.creds["base"] = host
	return nil
}

// awsReady returns the base of the address in the region.
func awsReady(c *check) *judge.Failure {
	host, _ := c.params["customHost"].(string)
	if own, _ := c.creds["customHost"].(string); own != "" {
		host = own
	}
	region, _ := c.creds["awsRegion"].(string)
	switch {
	case region == "":
		region = "us-east-1"
	case strings.Trim(region, "abcdefghijklmnopqrstuvwxyz0123456789-") != "":
		return c.fails(judge.CredentialsError, "needs credentials.awsRegion in small letters, digits and dashes")
	}
	if host == "" {
		host = "https://bedrock-runtime." + region + ".amazonaws.com"
	}
	c.creds["awsRegion"], c.creds["base"] = region, host
	return nil
}

// policies are the parts of a Bedrock assessment, and the lists of each.
var policies = map[string][]string{
	"topicPolicy": {"topics"}, "contentPolicy": {"filters"}, "wordPolicy": {"customWords", "managedWordLists"},
	"sensitiveInformationPolicy": {"piiEntities", "regexes"}, "contextualGroundingPolicy": {"filters"}, "automatedReasoningPolicy": {"findings"},
}

// bedrock reads the assessments of a guardrail. Blocked content fails. Masked content also
// fails, unless the check redacts and nothing was blocked. Content that was only detected
// (action NONE) is reported and passes.
func bedrock(a *vendorCall, resp response) {
	intervened := resp.word("action", "NONE", "GUARDRAIL_INTERVENED") == "GUARDRAIL_INTERVENED"
	blocked, masked, assessed := []string{}, []string{}, false
	for _, one := range resp.listIf("assessments") {
		for policy, lists := range policies {
			for _, list := range lists {
				for _, f := range one.get(policy).listIf(list) {
					action := optional[string](f, "action")
					name := label(policy + "/" + first(f, "type", "name"))
					switch action {
					case "BLOCKED":
						blocked, assessed = append(blocked, name), true
					case "ANONYMIZED":
						masked, assessed = append(masked, name), true
					default:
						a.run.note(name)
						assessed = true
					}
				}
			}
		}
	}
	for _, name := range blocked {
		a.run.found(name)
	}
	switch {
	case !intervened:
		return
	case !assessed:
		a.run.found("intervened")
	case len(blocked) > 0:
		return
	}
	text := ""
	for _, o := range resp.listIf("outputs") {
		text += o.text("text")
	}
	for _, name := range masked {
		if text == "" {
			a.run.found(name)
			continue
		}
		a.run.redact(a.part, text, name)
	}
}

// first returns the first of several texts that a response has.
func first(a response, names ...string) string {
	for _, name := range names {
		if s, ok := a.get(name).v.(string); ok && s != "" {
			return s
		}
	}
	return "finding"
}

// alibabaForm returns a call of MultiModalGuard, signed with HMAC-SHA1 as Alibaba Cloud's RPC
// interfaces require: over all parameters but the signature, in order, escaped twice.
func alibabaForm(a *vendorCall) []byte {
	id, _ := a.run.creds["accessKeyId"].(string)
	secret, _ := a.run.creds["accessKeySecret"].(string)
	region, _ := a.run.creds["regionId"].(string)
	service := "query_security_check"
	if a.run.afterResponse() {
		service = "response_security_check"
	}
	if region == "" || strings.HasPrefix(region, "cn-") {
		service += "_pro"
	} else {
		service += "_cb"
	}
	content, _ := json.Marshal(map[string]string{"content": a.text})
	form := url.Values{"Action": {"MultiModalGuard"}, "Version": {"2022-03-02"}, "Format": {"JSON"}, "AccessKeyId": {id}, "SignatureMethod": {"HMAC-SHA1"}, "SignatureVersion": {"1.0"},
		"SignatureNonce": {rand.Text()}, "Timestamp": {a.run.Now().UTC().Format("2006-01-02T15:04:05Z")}, "Service": {service}, "ServiceParameters": {string(content)}}
	sorted := strings.ReplaceAll(form.Encode(), "+", "%20")
	mac := hmac.New(sha1.New, []byte(secret+"&"))
	mac.Write([]byte("POST&%2F&" + url.QueryEscape(sorted)))
	form.Set("Signature", base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	return []byte(form.Encode())
}

// alibaba fails content that the vendor would block or mask, and reports content that it only
// watches.
func alibaba(a *vendorCall, resp response) {
	if resp.number("Code") != 200 {
		*resp.bad = true
		return
	}
	suggestion := resp.word("Data.Suggestion", "pass", "watch", "mask", "block")
	if suggestion == "block" || suggestion == "mask" {
		a.run.found(suggestion)
	}
	for _, d := range resp.get("Data").listIf("Detail") {
		if optional[string](d, "Suggestion") != "pass" {
			a.run.note(label(d.text("Type")))
		}
	}
}
