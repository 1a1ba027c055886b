package provider

import (
	"net/http"
	"strings"
)

// Part classifies a field of a credential, for the rule that saved credentials are never
// sent to an address from the caller.
type Part uint8

const (
	// Opens: the field is a secret, or names the account.
	Opens Part = 1 << iota
	// Places: the field changes the host that is called, or that issues a token.
	Places
	// Plain: a version, a flag, a name within the account.
	Plain
)

// parts sorts the fields of all providers. A field that is missing here counts both as a
// credential and as an address.
var parts = map[string]Part{
	"aws_access_key_id": Opens, "aws_secret_access_key": Opens, "aws_session_token": Opens, "aws_external_id": Opens,
	"azure_ad_token": Opens, "azure_entra_client_id": Opens, "azure_entra_client_secret": Opens, "azure_managed_client_id": Opens, "azure_workload_client_id": Opens,
	"oracle_tenancy": Opens, "oracle_user": Opens, "oracle_fingerprint": Opens, "oracle_private_key": Opens, "oracle_key_passphrase": Opens, "oracle_compartment_id": Opens,
	"modal_key": Opens, "modal_secret": Opens, "openai_organization": Opens, "openai_project": Opens, "anthropic_aws_workspace_id": Opens,
	"vertex_project_id": Opens, "fireworks_account_id": Opens, "workers_ai_account_id": Opens, "predibase_tenant_id": Opens,
	"stability_client_id": Opens, "stability_client_user_id": Opens, "amzn_sagemaker_custom_attributes": Opens, "amzn_sagemaker_session_id": Opens,

	"aws_role_arn": Opens | Places, "azure_entra_tenant_id": Opens | Places, "azure_workload_tenant_id": Opens | Places, "vertex_service_account_json": Opens | Places, "vertex_workload_service_account": Opens | Places, "vertex_workload_audience": Places,

	"azure_resource_name": Places, "azure_foundry_url": Places, "azure_entra_scope": Places, "huggingface_base_url": Places,
	"databricks_workspace": Places, "snowflake_account": Places, "aws_region": Places, "aws_service": Places,
	"vertex_region": Places, "oracle_region": Places, "byteplus_region": Places,

	"openai_beta": Plain, "anthropic_beta": Plain, "anthropic_version": Plain, "anthropic_inspect_stream_for_overloaded_error": Plain,
	"azure_auth_mode": Plain, "is_key_required": Plain, "azure_deployment_config": Plain, "azure_deployment_id": Plain, "azure_api_version": Plain,
	"azure_model_name": Plain, "azure_deployment_name": Plain, "azure_endpoint_name": Plain, "azure_extra_parameters": Plain,
	"aws_auth_type": Plain, "aws_bedrock_model": Plain, "amz_server_side_encryption": Plain, "amz_server_side_encryption_aws_kms_key_id": Plain,
	// Buckets are named with each file; their store only gets signatures, or has one host for
	// all of them.
	"aws_s3_bucket": Plain, "aws_s3_object_key": Plain, "vertex_storage_bucket_name": Plain,
	"amzn_sagemaker_target_model": Plain, "amzn_sagemaker_target_variant": Plain, "amzn_sagemaker_target_container_hostname": Plain,
	"amzn_sagemaker_inference_id": Plain, "amzn_sagemaker_enable_explanations": Plain, "amzn_sagemaker_inference_component": Plain, "amzn_sagemaker_model_name": Plain,
	"vertex_auth_type": Plain, "provider_file_name": Plain, "provider_model": Plain, "provider_batch_endpoint": Plain, "file_purpose": Plain,
	"vertex_skip_ptu_cost_attribution": Plain, "vertex_map_metadata": Plain,
	"mistral_fim_completion": Plain, "file_upload_size": Plain, "databricks_serving_endpoint_name": Plain,
	"oracle_serving_mode": Plain, "oracle_api_version": Plain, "stability_client_version": Plain,
}

// Part is what the field does.
func (f *Field) Part() Part {
	if part, sorted := parts[f.Name]; sorted {
		return part
	}
	return Opens | Places
}

// Holds reports whether the key and the fields of a config target hold any part of a
// credential. If so, the target is only called at its own address.
func (p *Provider) Holds(key string, fields map[string]any) bool {
	if key != "" {
		return true
	}
	for name, value := range fields {
		if name == "custom_headers" {
			return true
		}
		if f, ok := p.Field(name); ok && f.Part()&Opens != 0 && value != nil && value != "" {
			return true
		}
	}
	return false
}

// MovedBy returns the caller's header that would send a request with the saved credential
// to another address than its own; "" if there is none. A header that repeats the saved
// value is harmless.
func (c *Credential) MovedBy(p *Provider, h http.Header) string {
	for _, f := range p.placing {
		if f.header != "" {
			for _, v := range h[f.header] {
				if c.moved(f, v) {
					return f.HeaderName()
				}
			}
		}
		if f.Bare != "" {
			for _, v := range h[canonical(f.Bare)] {
				if c.moved(f, v) {
					return f.Bare
				}
			}
		}
	}
	return ""
}

// MovedByFields is like MovedBy, for the fields of a config in the request.
func (c *Credential) MovedByFields(p *Provider, fields map[string]any) string {
	for name, value := range fields {
		f, ok := p.Field(name)
		if !ok || f.Part()&Places == 0 {
			continue
		}
		if text, err := asText(name, value); err != nil || c.moved(f, text) {
			return name
		}
	}
	return ""
}

// moved reports whether a field's value is another address than the saved one.
func (c *Credential) moved(f *Field, value string) bool {
	if f.Form == BaseURL {
		return value != "" && strings.TrimRight(value, "/") != strings.TrimRight(c.Fields[f.Name], "/")
	}
	return value != "" && !strings.EqualFold(value, c.Fields[f.Name])
}
