package httpapi_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/internal/httpapi"
)

// What the desk says is told of member by member, and nothing is told of that it does not say.
func TestOperatorSchemasAreTold(t *testing.T) {
	t.Parallel()
	d, _ := readDocument(t)
	for name, told := range httpapi.ToldOperatorSchemas() {
		s, ok := d.Components.Schemas[name]
		require.True(t, ok, name)
		require.Equal(t, sortedKeys(s.Properties), told, "%s: say in openapi_ops_schemas.go what each member means", name)
	}
}

// Every answer of the desk has an example, and each is what its schema allows, with every member told of.
func TestOperatorExamplesFit(t *testing.T) {
	t.Parallel()
	c := theContract(t)
	seen := 0
	for path, item := range c.document.Paths.Map() {
		for method, op := range item.Operations() {
			if !slices.Contains(op.Tags, "Operators") && !slices.Contains(op.Tags, "Finance") {
				continue
			}
			seen++
			content := op.Responses.Value("200").Value.Content["application/json"]
			require.NotNil(t, content.Example, "%s %s", method, path)
			text, err := json.Marshal(content.Example)
			require.NoError(t, err)
			_, err = conforms(content.Schema, text)
			require.NoError(t, err, "%s %s: %s", method, path, text)
		}
	}
	require.Equal(t, 29, seen)
}

// Who acts is asked for the permission of that act; nothing of the desk is open to customers, and to finance only refunds are.
func TestOperatorOperationsNameTheirScope(t *testing.T) {
	t.Parallel()
	for path, item := range theContract(t).document.Paths.Map() {
		for method, op := range item.Operations() {
			if !strings.HasPrefix(path, "/v1/ops/") {
				continue
			}
			require.Contains(t, op.Description, "scope", "%s %s", method, path)
			require.NotNil(t, op.Responses.Value("403"), "%s %s", method, path)
			if method == http.MethodPost && strings.Contains(path, "/effects/") {
				require.Contains(t, op.Description, "operator:"+path[strings.LastIndex(path, "/")+1:])
			}
		}
	}
}
