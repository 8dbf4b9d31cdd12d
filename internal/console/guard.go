package console

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"holdfast/domain"
	"holdfast/internal/clients"
	"holdfast/outbox"
)

const (
	maxBody = 64 << 10

	// policy lets a page load what this process serves, and nothing else; what is written into it does not run.
	policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
		"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)

// visit is one request of somebody who is signed in; of the pages before that, who is empty.
type visit struct {
	c   *Console
	w   http.ResponseWriter
	r   *http.Request
	who clients.Principal

	session domain.Secret
}

type handler func(v *visit) error

// anybody is who is signed in, whatever for.
const anybody clients.Scope = ""

// ServeHTTP is all that happens to every request.
func (c *Console) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("Content-Security-Policy", policy)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	header.Set("Cache-Control", "no-store")
	r.Body = http.MaxBytesReader(w, r.Body, maxBody)
	v := &visit{c: c, w: w, r: r}
	if err := c.origin.Check(r); err != nil {
		v.fail(refusal(http.StatusForbidden, "Sent from another site",
			"This was not sent from a page of the console, and nothing was done. Open the console itself, and do it there."))
		return
	}
	if r.URL.Path == Root {
		http.Redirect(w, r, Root+"/", http.StatusSeeOther)
		return
	}
	if _, pattern := c.mux.Handler(r); pattern == "" {
		v.lost()
		return
	}
	c.mux.ServeHTTP(w, r)
}

// lost answers what no page is for.
func (v *visit) lost() {
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		other := v.r.Clone(v.r.Context())
		other.Method = method
		if _, pattern := v.c.mux.Handler(other); pattern != "" {
			v.w.Header().Set("Allow", method)
			v.fail(refusal(http.StatusMethodNotAllowed, "Not this way", "This address answers "+method+" only. Nothing was done."))
			return
		}
	}
	v.fail(refusal(http.StatusNotFound, "There is no such page", "Nothing is at this address. Start from the overview, or look for the id that you have."))
}

// open serves a page for anybody.
func (c *Console) open(pattern string, h handler) {
	c.mux.HandleFunc(under(pattern), func(w http.ResponseWriter, r *http.Request) {
		v := &visit{c: c, w: w, r: r}
		if err := v.parse(); err != nil {
			v.fail(err)
			return
		}
		if err := h(v); err != nil {
			v.fail(err)
		}
	})
}

// page serves a page for who is signed in with a scope. What is posted must carry the session's token.
func (c *Console) page(pattern string, scope clients.Scope, h handler) {
	c.open(pattern, func(v *visit) error {
		session, ok := v.cookie(sessionCookie)
		who, err := clients.Principal{}, clients.ErrUnauthenticated
		if ok {
			// What a page fetches by itself keeps nobody signed in.
			who, err = c.config.Sessions.Resume(v.r.Context(), domain.Secret(session), v.r.Header.Get("HX-Request") == "")
		}
		switch {
		case errors.Is(err, clients.ErrUnauthenticated):
			v.askToSignIn(ok)
			return nil
		case err != nil:
			return err
		}
		v.who, v.session = who, domain.Secret(session)
		if v.r.Method == http.MethodPost && !hmac.Equal([]byte(v.r.PostForm.Get("csrf")), []byte(v.csrf())) {
			return refusal(http.StatusForbidden, "The form is not of this session",
				"It was made before you signed in, or not by this console. Nothing was done. Go back, load the page again, and send its form.")
		}
		if err := v.demand(scope); err != nil {
			return err
		}
		return h(v)
	})
}

func under(pattern string) string {
	method, path, _ := strings.Cut(pattern, " ")
	return method + " " + Root + path
}

// parse reads query and form, whatever they hold.
func (v *visit) parse() error {
	var large *http.MaxBytesError
	switch err := v.r.ParseForm(); {
	case errors.As(err, &large):
		return refusal(http.StatusRequestEntityTooLarge, "Too much text", "The form is larger than any that this console has. Nothing was done; shorten the text.")
	case err != nil:
		return refusal(http.StatusBadRequest, "The request cannot be read", "Its query or form is not as a browser sends it. Nothing was done; start from the overview.")
	}
	for _, values := range v.r.Form {
		for _, value := range values {
			if strings.ContainsRune(value, 0) || strings.ToValidUTF8(value, "") != value {
				return refusal(http.StatusBadRequest, "The request cannot be read", "A value in it is not text. Nothing was done; type it again.")
			}
		}
	}
	return nil
}

// demand asks for a scope.
func (v *visit) demand(scope clients.Scope) error {
	if scope == anybody || v.who.Can(scope) {
		return nil
	}
	return refusal(http.StatusForbidden, "You may not do this",
		"Your token does not have the scope "+string(scope)+". Nothing was done. Ask somebody who has it, or sign in with another token.")
}

// csrf is the session's token in every form: only this process and the page have it.
func (v *visit) csrf() string {
	mac := hmac.New(sha256.New, []byte(v.session.Reveal()))
	_, _ = mac.Write([]byte("form")) // never fails
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// actor is who acts, as in the audit; the API writes the same of the same client.
func (v *visit) actor() outbox.Actor { return outbox.Actor(v.who.Name) }

// form reads one posted value, without the white space around it.
func (v *visit) form(name string) string { return strings.TrimSpace(v.r.PostForm.Get(name)) }

// query reads one value of the address.
func (v *visit) query(name string) string { return strings.TrimSpace(v.r.URL.Query().Get(name)) }

// see sends the browser to a page after an act.
func (v *visit) see(path string, query ...string) error {
	to := Root + path
	values := url.Values{}
	for i := 0; i+1 < len(query); i += 2 {
		values.Set(query[i], query[i+1])
	}
	if len(values) > 0 {
		to += "?" + values.Encode()
	}
	http.Redirect(v.w, v.r, to, http.StatusSeeOther)
	return nil
}
