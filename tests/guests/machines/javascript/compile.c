// Turns a bundle (an ECMAScript module) into QuickJS's bytecode, which is the same on every machine:
//
//   compile BUNDLE.js OUT
#include <stdio.h>
#include <stdlib.h>

#include "quickjs.h"

int main(int count, char **arguments) {
  FILE *source = count == 3 ? fopen(arguments[1], "rb") : NULL;
  if (!source) return 2;
  fseek(source, 0, SEEK_END);
  const size_t size = (size_t)ftell(source);
  rewind(source);
  char *text = calloc(size + 1, 1);
  if (fread(text, 1, size, source) != size) return 2;

  JSContext *context = JS_NewContext(JS_NewRuntime());
  JSValue module = JS_Eval(context, text, size, arguments[1], JS_EVAL_TYPE_MODULE | JS_EVAL_FLAG_COMPILE_ONLY);
  if (JS_IsException(module)) {
    JSValue error = JS_GetException(context);
    fprintf(stderr, "%s: %s\n", arguments[1], JS_ToCString(context, error));
    return 1;
  }
  size_t bytes;
  const uint8_t *bytecode = JS_WriteObject(context, &bytes, module, JS_WRITE_OBJ_BYTECODE | JS_WRITE_OBJ_STRIP_DEBUG);
  FILE *out = fopen(arguments[2], "wb");
  return bytecode && out && fwrite(bytecode, 1, bytes, out) == bytes && fclose(out) == 0 ? 0 : 1;
}
