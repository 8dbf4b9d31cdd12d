package console

import (
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"net/http"
	"path"
	"strings"
)

// assets are the script and style files by name, each with the hash of its content in the address: a browser keeps them for good.
type assets map[string]asset

type asset struct {
	contentType, hash string
	content           []byte
}

func loadAssets(files fs.FS) (assets, error) {
	all := assets{}
	names, err := fs.Glob(files, "assets/*")
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		content, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, err
		}
		sum := sha256.Sum256(content)
		all[path.Base(name)] = asset{contentTypes()[path.Ext(name)], hex.EncodeToString(sum[:6]), content}
	}
	return all, nil
}

func contentTypes() map[string]string {
	return map[string]string{
		".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml", ".LICENSE": "text/plain; charset=utf-8",
	}
}

// url is the address of an asset.
func (a assets) url(name string) string { return Root + "/assets/" + name + "?v=" + a[name].hash }

func (a assets) serve(w http.ResponseWriter, r *http.Request) {
	file, ok := a[r.PathValue("name")]
	if !ok || strings.HasPrefix(r.PathValue("name"), ".") {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", file.contentType)
	if r.URL.Query().Get("v") == file.hash {
		w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	_, _ = w.Write(file.content)
}
