/* tell.ts: tell the server something about a run, and say how it went. */
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { ApiError } from "../api/client";
import { toast } from "../parts/toast";

export interface Telling {
  busy: boolean;
  refusal: string;
  /** true: done. */
  tell: (what: () => Promise<unknown>, done: string, onRefusal?: (error: unknown) => void) => Promise<boolean>;
}

export function useTell(): Telling {
  const queries = useQueryClient();
  const [busy, setBusy] = useState(false);
  const [refusal, setRefusal] = useState("");
  const tell: Telling["tell"] = async (what, done, onRefusal) => {
    setBusy(true);
    setRefusal("");
    try {
      await what();
      toast(done);
      void queries.invalidateQueries({ queryKey: ["run"] });
      void queries.invalidateQueries({ queryKey: ["why"] });
      return true;
    } catch (error) {
      setRefusal(error instanceof ApiError ? error.message : String(error));
      onRefusal?.(error);
      return false;
    } finally {
      setBusy(false);
    }
  };
  return { busy, refusal, tell };
}
