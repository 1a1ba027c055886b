// Package kms wraps data keys with a key of AWS KMS, symmetric, in the key's own
// Region.
//
// The encryption context is {org, purpose}. purpose is the table of the value, so that
// kms:EncryptionContext:purpose can limit a role's use of the key. Sealing needs
// kms:GenerateDataKey, opening kms:Decrypt.
package kms

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/kms/types"

	"gateway/shared/seal"
)

// Wrapper is a seal.Wrapper over KMS.
type Wrapper struct {
	client *kms.Client
	first  seal.KeyID
	arns   map[seal.KeyID]string
}

var _ seal.Wrapper = (*Wrapper)(nil)

// Options of a Wrapper.
type Options struct {
	// Key is the ARN (or the id) of the key that wraps. KMS's own yearly rotation does not
	// change it.
	Key string
	// FormerKeys are keys that wrapped in the past; they are only used to unwrap.
	FormerKeys []string
	// Endpoint is a URL to call instead of the Region's KMS.
	Endpoint string
}

// New uses cfg's Region and credentials. It makes no call. cfg without an HTTP
// client gets the SDK's own, which honors AWS_CA_BUNDLE.
func New(cfg aws.Config, o Options) *Wrapper {
	if cfg.HTTPClient == nil {
		cfg.HTTPClient = awshttp.NewBuildableClient()
	}
	w := &Wrapper{first: keyID(o.Key), arns: map[seal.KeyID]string{}}
	for _, arn := range append([]string{o.Key}, o.FormerKeys...) {
		w.arns[keyID(arn)] = arn
	}
	w.client = kms.NewFromConfig(cfg, func(ko *kms.Options) {
		if o.Endpoint != "" {
			ko.BaseEndpoint = aws.String(o.Endpoint)
		}
	})
	return w
}

func keyID(arn string) seal.KeyID {
	sum := sha256.Sum256([]byte("kms " + arn))
	return seal.KeyID(sum[:])
}

func encryptionContext(c seal.Context) map[string]string {
	return map[string]string{"org": c.Org, "purpose": c.Purpose}
}

// Generate makes a data key.
func (w *Wrapper) Generate(ctx context.Context, c seal.Context) (seal.DataKey, error) {
	out, err := w.client.GenerateDataKey(ctx, &kms.GenerateDataKeyInput{
		KeyId:             aws.String(w.arns[w.first]),
		KeySpec:           types.DataKeySpecAes256,
		EncryptionContext: encryptionContext(c),
	})
	if err != nil {
		return seal.DataKey{}, fmt.Errorf("kms: generate data key: %w", err)
	}
	return seal.DataKey{Plain: out.Plaintext, Wrapped: out.CiphertextBlob, Master: w.first}, nil
}

// Unwrap gives a plain data key. The call names the master key, so that a key wrapped by
// any other one is rejected.
func (w *Wrapper) Unwrap(ctx context.Context, c seal.Context, master seal.KeyID, wrapped []byte) ([]byte, error) {
	arn, ok := w.arns[master]
	if !ok {
		return nil, fmt.Errorf("%w: master key %x is none of the configured KMS keys", seal.ErrRefused, master)
	}
	out, err := w.client.Decrypt(ctx, &kms.DecryptInput{
		KeyId:             &arn,
		CiphertextBlob:    wrapped,
		EncryptionContext: encryptionContext(c),
	})
	if err == nil {
		return out.Plaintext, nil
	}
	var invalid *types.InvalidCiphertextException
	var incorrect *types.IncorrectKeyException
	if errors.As(err, &invalid) || errors.As(err, &incorrect) {
		return nil, fmt.Errorf("%w: %w", seal.ErrRefused, err)
	}
	return nil, fmt.Errorf("kms: decrypt: %w", err)
}
